//! Compares our declarations with the headers, by a C program that prints what the compiler makes of them.

use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;

use super::*;

#[test]
fn our_declarations_are_those_of_the_headers() {
    if !Path::new("/usr/include/rdma/fabric.h").exists()
        || Command::new("cc").arg("-v").output().is_err()
    {
        return crate::strangers::skip(&"no libfabric headers or no C compiler on this machine");
    }
    let facts = facts();
    let mut program = String::from(
        "#include <stdio.h>\n#include <stddef.h>\n#include <sys/uio.h>\n#include <rdma/fabric.h>\n\
         #include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n#include <rdma/fi_eq.h>\n\
         #include <rdma/fi_cm.h>\n#include <rdma/fi_rma.h>\n#include <rdma/fi_errno.h>\nint main(void) {\n",
    );
    for (c, _) in &facts {
        writeln!(program, "printf(\"%llu\\n\", (unsigned long long)({c}));")
            .expect("a string takes text");
    }
    program.push_str("return 0; }\n");
    let folder = std::env::temp_dir().join(format!("mizzen-ofi-layout-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let (source, binary) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program).expect("a file in our folder");
    let compiled = Command::new("cc")
        .arg("-w")
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output();
    let compiled = compiled.expect("a compiler, which was there a moment ago");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = Command::new(&binary)
        .output()
        .expect("a program that was just made");
    std::fs::remove_dir_all(&folder).expect("our folder");
    let theirs = String::from_utf8(printed.stdout).expect("digits");
    assert_eq!(theirs.lines().count(), facts.len());
    for ((c, ours), theirs) in facts.iter().zip(theirs.lines()) {
        assert_eq!(*ours, theirs.parse::<u64>().expect("a number"), "{c}");
    }
}

/// C expressions, and what we take them to be.
fn facts() -> Vec<(String, u64)> {
    let mut facts = Vec::new();
    constants(&mut facts);
    macro_rules! offsets {
        ($ours:ident is $theirs:literal: $($mine:ident = $name:literal),+) => {
            $(facts.push((
                format!("offsetof(struct {}, {})", $theirs, $name),
                offset_of!($ours, $mine) as u64,
            ));)+
        };
    }
    offsets!(Fid is "fid": fclass = "fclass", context = "context", ops = "ops");
    offsets!(Ops is "fi_ops": size = "size", close = "close", bind = "bind", control = "control");
    offsets!(TxAttr is "fi_tx_attr": caps = "caps", mode = "mode", op_flags = "op_flags",
        msg_order = "msg_order", comp_order = "comp_order", inject_size = "inject_size", size = "size",
        iov_limit = "iov_limit");
    offsets!(RxAttr is "fi_rx_attr": caps = "caps", msg_order = "msg_order",
        total_buffered_recv = "total_buffered_recv", size = "size");
    offsets!(EpAttr is "fi_ep_attr": kind = "type", protocol = "protocol",
        protocol_version = "protocol_version", max_msg_size = "max_msg_size");
    offsets!(DomainAttr is "fi_domain_attr": domain = "domain", name = "name", threading = "threading",
        control_progress = "control_progress", data_progress = "data_progress",
        resource_mgmt = "resource_mgmt", av_type = "av_type", mr_mode = "mr_mode",
        mr_key_size = "mr_key_size");
    offsets!(FabricAttr is "fi_fabric_attr": fabric = "fabric", name = "name", prov_name = "prov_name",
        prov_version = "prov_version", api_version = "api_version");
    offsets!(Info is "fi_info": next = "next", caps = "caps", mode = "mode", addr_format = "addr_format",
        src_addrlen = "src_addrlen", dest_addrlen = "dest_addrlen", src_addr = "src_addr",
        dest_addr = "dest_addr", handle = "handle", tx_attr = "tx_attr", rx_attr = "rx_attr",
        ep_attr = "ep_attr", domain_attr = "domain_attr", fabric_attr = "fabric_attr");
    offsets!(FidFabric is "fid_fabric": fid = "fid", ops = "ops");
    offsets!(OpsFabric is "fi_ops_fabric": domain = "domain", trywait = "trywait");
    offsets!(FidDomain is "fid_domain": fid = "fid", ops = "ops", mr = "mr");
    offsets!(OpsDomain is "fi_ops_domain": av_open = "av_open", cq_open = "cq_open", endpoint = "endpoint");
    offsets!(OpsMr is "fi_ops_mr": reg = "reg");
    offsets!(FidMr is "fid_mr": fid = "fid", mem_desc = "mem_desc", key = "key");
    offsets!(AvAttr is "fi_av_attr": kind = "type", rx_ctx_bits = "rx_ctx_bits", count = "count",
        ep_per_node = "ep_per_node", name = "name", map_addr = "map_addr", flags = "flags");
    offsets!(FidAv is "fid_av": fid = "fid", ops = "ops");
    offsets!(OpsAv is "fi_ops_av": insert = "insert", remove = "remove");
    offsets!(CqAttr is "fi_cq_attr": size = "size", flags = "flags", format = "format",
        wait_obj = "wait_obj", signaling_vector = "signaling_vector", wait_cond = "wait_cond",
        wait_set = "wait_set");
    offsets!(FidCq is "fid_cq": fid = "fid", ops = "ops");
    offsets!(OpsCq is "fi_ops_cq": read = "read", readerr = "readerr");
    offsets!(CqMsgEntry is "fi_cq_msg_entry": op_context = "op_context", flags = "flags", len = "len");
    offsets!(CqErrEntry is "fi_cq_err_entry": op_context = "op_context", flags = "flags", len = "len",
        olen = "olen", err = "err", prov_errno = "prov_errno", err_data = "err_data",
        err_data_size = "err_data_size");
    offsets!(FidEp is "fid_ep": fid = "fid", cm = "cm", msg = "msg", rma = "rma");
    offsets!(OpsCm is "fi_ops_cm": getname = "getname");
    offsets!(OpsMsg is "fi_ops_msg": recv = "recv", send = "send", inject = "inject");
    offsets!(RmaIov is "fi_rma_iov": addr = "addr", len = "len", key = "key");
    offsets!(MsgRma is "fi_msg_rma": msg_iov = "msg_iov", desc = "desc", iov_count = "iov_count",
        addr = "addr", rma_iov = "rma_iov", rma_iov_count = "rma_iov_count", context = "context",
        data = "data");
    offsets!(OpsRma is "fi_ops_rma": writemsg = "writemsg");
    let mut fact = |c: &str, ours: usize| facts.push((c.to_owned(), ours as u64));
    fact("sizeof(struct fi_cq_msg_entry)", size_of::<CqMsgEntry>());
    fact("sizeof(struct fi_av_attr)", size_of::<AvAttr>());
    fact("sizeof(struct fi_msg_rma)", size_of::<MsgRma>());
    fact("sizeof(struct fi_rma_iov)", size_of::<RmaIov>());
    fact("sizeof(struct fid)", size_of::<Fid>());
    // What we allocate and the library fills must not be shorter than theirs.
    let at_least = |c: &str, ours: usize| (format!("sizeof({c}) <= {ours}"), 1);
    facts.push(at_least("struct fi_cq_attr", size_of::<CqAttr>()));
    facts.push(at_least("struct fi_cq_err_entry", size_of::<CqErrEntry>()));
    facts
}

fn constants(facts: &mut Vec<(String, u64)>) {
    macro_rules! same {
        ($($name:ident),+) => {
            $(facts.push((stringify!($name).to_owned(), $name as u64));)+
        };
    }
    same!(
        FI_MSG,
        FI_RMA,
        FI_WRITE,
        FI_RECV,
        FI_SEND,
        FI_REMOTE_WRITE,
        FI_COMPLETION,
        FI_DELIVERY_COMPLETE,
        FI_SOURCE,
        FI_ORDER_SAS,
        FI_EP_RDM,
        FI_THREAD_DOMAIN,
        FI_PROGRESS_MANUAL,
        FI_RM_ENABLED,
        FI_AV_MAP,
        FI_AV_TABLE,
        FI_MR_LOCAL,
        FI_MR_VIRT_ADDR,
        FI_MR_ALLOCATED,
        FI_MR_PROV_KEY,
        FI_MR_ENDPOINT,
        FI_CQ_FORMAT_MSG,
        FI_WAIT_NONE,
        FI_WAIT_FD,
        FI_GETWAIT,
        FI_ENABLE,
        FI_ADDR_UNSPEC,
        FI_EAGAIN,
        FI_EAVAIL
    );
}
