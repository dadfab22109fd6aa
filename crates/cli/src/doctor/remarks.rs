//! What is not as it should be, on each host and between them.

use super::between;
use super::examined::{Examined, Remark};
use super::report::Verdict;

/// All that is not as it should be, the worst first. The same on several hosts is one.
pub(crate) fn remarks(examined: &Examined) -> Vec<Remark> {
    let mut remarks = between::remarks(examined);
    for row in examined.rows() {
        for (host, finding) in examined.hosts.iter().zip(&row.cells) {
            let Some(finding) = finding.filter(|finding| finding.verdict != Verdict::Ok) else {
                continue;
            };
            let same = |remark: &&mut Remark| {
                let key = (remark.verdict, &remark.what, &remark.advice);
                key == (finding.verdict, &finding.what, &finding.advice)
            };
            match remarks.iter_mut().find(same) {
                Some(remark) => remark.hosts.push(host.name.clone()),
                None => remarks.push(Remark {
                    verdict: finding.verdict,
                    what: finding.what.clone(),
                    hosts: vec![host.name.clone()],
                    advice: finding.advice.clone(),
                }),
            }
        }
    }
    remarks.sort_by_key(|remark| std::cmp::Reverse(remark.verdict));
    remarks
}
