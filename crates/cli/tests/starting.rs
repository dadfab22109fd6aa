//! What a process finds in its environment, on which hosts it is started directly, and what the launcher returns.

mod common;

use common::{Script, mizzen, output, sorted_lines, text};

/// A wrapper script, as people have them: it knows its process before the program joins.
const WRAPPER: &str = r#"echo "$MIZZEN_RANK of $MIZZEN_SIZE, $MIZZEN_LOCAL_RANK on $MIZZEN_HOST""#;

#[test]
fn a_script_knows_its_rank() {
    let script = Script::new(WRAPPER);
    let run = output(["--no-label", "-n", "3", "sh", &script.path()]);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim();
    let expected = [0, 1, 2].map(|rank| format!("{rank} of 3, {rank} on {host}"));
    assert_eq!(sorted_lines(&run.stdout), expected, "{}", text(&run.stderr));
}

#[test]
fn a_script_knows_its_rank_on_its_host() {
    let script = Script::new(WRAPPER);
    let hosts = ["--hosts", "h1,h2", "--remote-shell", "env"];
    let mut command = mizzen(["--no-label", "-n", "3"].iter().chain(&hosts));
    // Of a job around this one.
    command.env("MIZZEN_RANK", "77").env("MIZZEN_HOST", "h77");
    let run = command.arg("sh").arg(script.path()).output().unwrap();
    assert_eq!(
        sorted_lines(&run.stdout),
        ["0 of 3, 0 on h1", "1 of 3, 1 on h1", "2 of 3, 0 on h2"],
        "{}",
        text(&run.stderr)
    );
}

#[test]
fn this_machine_needs_no_remote_shell() {
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    for host in ["localhost", "127.0.0.1", "::1", here.trim()] {
        let mut command = mizzen(["-n", "2", "--hosts", host, "echo", "hello"]);
        // The default remote shell is not found.
        let run = command.env("PATH", "/nowhere:/bin").output().unwrap();
        assert_eq!(
            sorted_lines(&run.stdout),
            ["[0] hello", "[1] hello"],
            "{host}: {}",
            text(&run.stderr)
        );
    }
}

#[test]
fn this_machine_needs_no_remote_shell_beside_others() {
    // A stand-in for `ssh`, which reaches the other host only.
    let ssh = Script::new(
        "#!/bin/sh\nfor host; do [ \"$host\" = elsewhere ] && break; shift; done\n\
         shift || exit 255\nexec env \"$@\"\n",
    );
    let path = ssh.directory().join("ssh");
    std::fs::rename(ssh.path(), &path).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let search = format!("{}:/usr/bin:/bin", ssh.directory().display());
    let script = "echo $MIZZEN_HOST";
    let args = [
        "-n",
        "2",
        "--hosts",
        "localhost,elsewhere",
        "sh",
        "-c",
        script,
    ];
    let run = mizzen(args).env("PATH", search).output().unwrap();
    assert_eq!(
        sorted_lines(&run.stdout),
        ["[0] localhost", "[1] elsewhere"],
        "{}",
        text(&run.stderr)
    );
    assert_eq!(run.status.code(), Some(0));
}

#[test]
fn a_remote_shell_that_was_asked_for_is_used_for_this_machine_too() {
    let options = ["--hosts", "localhost", "--remote-shell", "env ASKED=yes"];
    let script = "tr '\\0' '\\n' </proc/$PPID/environ | grep ASKED";
    let run = mizzen(options).args(["sh", "-c", script]).output().unwrap();
    assert_eq!(
        text(&run.stdout),
        "[0] ASKED=yes\n",
        "{}",
        text(&run.stderr)
    );
}

#[test]
fn a_habit_from_mpirun_gets_a_hint() {
    for (args, hint) in [
        (&["-np", "4", "true"][..], "did you mean -n 4?"),
        (&["-np4", "true"], "did you mean -n 4?"),
        (&["-np=4", "true"], "did you mean -n 4?"),
        (&["--no-label", "-np", "16", "true"], "did you mean -n 16?"),
    ] {
        let run = output(args);
        assert_eq!(run.status.code(), Some(2));
        let stderr = text(&run.stderr);
        assert!(stderr.contains(hint), "{args:?}: {stderr}");
    }
    // What follows the program is its own.
    let run = output(["echo", "-np", "4"]);
    assert_eq!(text(&run.stdout), "[0] -np 4\n");
}

/// Runs a job of three that goes on when processes fail, each of which does what the script says.
fn continued(script: &str) -> Option<i32> {
    let script = format!("case $MIZZEN_RANK in {script} esac");
    let run = output(["-n", "3", "--on-death", "continue", "sh", "-c", &script]);
    run.status.code()
}

#[test]
fn a_job_that_goes_on_without_a_killed_process_succeeds() {
    assert_eq!(continued("1) kill -9 $$;; *) exit 0;;"), Some(0));
    assert_eq!(continued("0) kill -6 $$;; 1) kill -9 $$;; *) ;;"), Some(0));
}

#[test]
fn a_job_that_goes_on_fails_if_a_process_says_so() {
    assert_eq!(
        continued("0) kill -9 $$;; 2) exit 3;; *) exit 0;;"),
        Some(3)
    );
}

#[test]
fn a_job_that_nobody_survives_fails() {
    assert_eq!(continued("*) kill -9 $$;;"), Some(137));
}

#[test]
fn the_help_tells_exit_codes_and_variables() {
    let run = output(["--help"]);
    let help = text(&run.stdout);
    for word in [
        "Exit code",
        "MIZZEN_RANK",
        "MIZZEN_SIZE",
        "MIZZEN_HOST",
        "MIZZEN_LOCAL_RANK",
        "MIZZEN_LOCAL_SIZE",
        "MIZZEN_CORES",
    ] {
        assert!(help.contains(word), "{word} is missing: {help}");
    }
}
