//! Settings of TCP that decide how fast a connection can be.

use super::super::report::Finding;
use super::read::read;
use super::words;

pub(crate) fn look() -> Vec<Finding> {
    let setting = |name: &str| read(format!("/proc/sys/net/{name}"));
    let most = |name: &str| setting(name).as_deref().and_then(last_number);
    vec![
        buffers(most("ipv4/tcp_rmem"), most("ipv4/tcp_wmem")),
        asked_buffers(most("core/rmem_max"), most("core/wmem_max")),
        Finding::ok(
            "congestion control",
            setting("ipv4/tcp_congestion_control").unwrap_or_else(|| "unknown".to_owned()),
        ),
    ]
}

/// What the kernel lets a connection grow to.
fn buffers(receive: Option<u64>, send: Option<u64>) -> Finding {
    let (Some(receive), Some(send)) = (receive, send) else {
        return Finding::ok("TCP buffers", "unknown");
    };
    let value = format!("{} in, {} out", words::bytes(receive), words::bytes(send));
    if receive.min(send) < SMALL {
        let advice = "A connection over a long or fast line fills larger buffers than these; as root: sysctl -w \
                      net.ipv4.tcp_rmem='4096 131072 16777216' net.ipv4.tcp_wmem='4096 16384 16777216'.";
        return Finding::note("TCP buffers", value, advice);
    }
    Finding::ok("TCP buffers", value)
}

/// What a program may ask for by itself. Not visible in every container.
fn asked_buffers(receive: Option<u64>, send: Option<u64>) -> Finding {
    let shown = |amount: Option<u64>| amount.map_or_else(|| "unknown".to_owned(), words::bytes);
    let value = format!("{} in, {} out", shown(receive), shown(send));
    Finding::ok("socket buffers", value)
}

fn last_number(text: &str) -> Option<u64> {
    text.split_whitespace().last()?.parse().ok()
}

/// 10 Gb/s over a way of 3 ms there and back fill this.
const SMALL: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::super::super::report::Verdict;
    use super::*;

    #[test]
    fn the_largest_of_three_counts() {
        assert_eq!(last_number("4096\t131072\t33554432"), Some(32 << 20));
        assert_eq!(last_number(""), None);
        assert_eq!(
            buffers(Some(32 << 20), Some(4 << 20)).value,
            "32 MiB in, 4 MiB out"
        );
        assert_eq!(buffers(Some(32 << 20), Some(4 << 20)).verdict, Verdict::Ok);
        assert_eq!(
            buffers(Some(32 << 20), Some(1 << 18)).verdict,
            Verdict::Note
        );
        assert_eq!(buffers(None, Some(1)).verdict, Verdict::Ok);
    }
}
