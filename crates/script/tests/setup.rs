//! Tests that commands are recognised only by their settings.

use ackclock_core::Span;
use ackclock_script::setup::{Qdisc, Setup};
use ackclock_script::{parse, Error, Limits, Options, Pos};

fn after(text: &str) -> Result<Setup, Error> {
    let mut setup = Setup::kernel();
    setup.apply(text, Pos { line: 3, column: 1 })?;
    Ok(setup)
}

#[test]
fn sysctls_in_every_spelling() {
    for text in [
        "sysctl -q net.ipv4.tcp_ecn=1",
        "sysctl -w net.ipv4.tcp_ecn=1 > /dev/null 2>&1",
        "/sbin/sysctl -qw net/ipv4/tcp_ecn=1",
        "echo 1 > /proc/sys/net/ipv4/tcp_ecn",
        "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_ecn=1",
        "sysctl -q net.ipv4.tcp_sack=0; sysctl -q net.ipv4.tcp_sack=1 && sysctl -q net.ipv4.tcp_ecn=1",
    ] {
        let mut expected = Setup::kernel();
        expected.sysctls.tcp_ecn = 1;
        assert_eq!(after(text).unwrap(), expected, "{text}");
    }
    let setup =
        after("sysctl -q net.ipv4.tcp_rmem=\"4096 10000\t20000\" net.ipv4.tcp_congestion_control=reno")
            .unwrap();
    assert_eq!(setup.sysctls.tcp_rmem, [4096, 10_000, 20_000]);
    assert_eq!(setup.sysctls.tcp_congestion_control, "reno");
}

#[test]
fn the_defaults_script_by_its_name() {
    // packet-scripts fact sheet, section 2: values set by the suites' defaults script
    for text in ["source ../common/defaults.sh", ". ./defaults.sh", "./defaults.sh", "/a/b/defaults.sh"] {
        let setup = after(text).unwrap();
        assert_eq!(setup, Setup::suite(), "{text}");
        assert_eq!(setup.sysctls.tcp_rmem, [4096, 540_000, 15 << 20]);
        assert_eq!(setup.sysctls.tcp_wmem, [4096, 262_144, 4 << 20]);
        assert_eq!((setup.sysctls.tcp_slow_start_after_idle, setup.sysctls.tcp_ecn), (0, 0));
        assert_eq!((setup.sysctls.tcp_early_retrans, setup.sysctls.tcp_recovery), (4, 1));
        assert_eq!((setup.sysctls.tcp_syn_retries, setup.sysctls.tcp_synack_retries), (5, 5));
    }
    let setup =
        after("./defaults.sh\n./set_sysctls.py /proc/sys/net/ipv4/tcp_slow_start_after_idle=1").unwrap();
    assert_eq!(setup.sysctls.tcp_slow_start_after_idle, 1);
}

#[test]
fn queues_routes_and_devices() {
    assert_eq!(after("tc qdisc replace dev tun0 root fq").unwrap().qdisc, Qdisc::Fq);
    assert_eq!(after("tc qdisc add dev tun0 root pfifo limit 0").unwrap().qdisc, Qdisc::DropAll);
    let both = "tc qdisc add dev tun0 root fq; tc qdisc del dev tun0 root";
    assert_eq!(after(both).unwrap().qdisc, Qdisc::Fifo);

    let route = after("ip route change 192.0.2.0/24 dev tun0 via 192.0.2.1 initcwnd 20 rto_min 5ms mtu lock 1300 advmss 900")
        .unwrap()
        .route;
    assert_eq!(
        (route.initcwnd, route.mtu, route.mtu_locked, route.advmss),
        (Some(20), Some(1300), true, Some(900))
    );
    assert_eq!(route.rto_min, Some(Span::from_ms(5)));

    assert_eq!(after("ip link set dev tun0 mtu 1400").unwrap().mtu, 1400);
    let setup = after("ethtool -K tun0 tso off gso off").unwrap();
    assert_eq!((setup.tso, setup.gso, setup.gro), (false, false, true));
    let module = "echo 2 > /sys/module/tcp_cubic/parameters/hystart_detect";
    assert_eq!(after(module).unwrap().cubic.hystart_detect, 2);
    let module = "echo 500 > /sys/module/tcp_cubic/parameters/hystart_ack_delta_us";
    assert_eq!(after(module).unwrap().cubic.hystart_ack_delta_us, 500);
}

#[test]
fn what_sets_nothing() {
    for text in [
        "",
        "# nothing",
        "/tmp/sysctl_restore_${PPID}.sh",
        "echo done",
        "true",
        "ip tcp_metrics flush all > /dev/null 2>&1",
        "sysctl net.ipv4.tcp_ecn",
        "modprobe -q tcp_bbr",
        "cat /proc/sys/net/ipv4/tcp_ecn",
    ] {
        assert_eq!(after(text).unwrap(), Setup::kernel(), "{text}");
    }
}

#[test]
fn everything_else_is_unsupported() {
    for text in [
        "rm -rf /",
        "iptables -A INPUT -j DROP",
        "nstat | grep x",
        "cat /etc/passwd",
        "echo x > /etc/passwd",
        "sysctl -q net.ipv4.tcp_of_the_future=1",
        "sysctl -q kernel.panic=1",
        "tc qdisc add dev tun0 root netem loss 1%",
        "tc qdisc add dev tun0 root pfifo limit 3",
        "ip route add 192.0.2.0/24 dev tun0 fastopen_no_cookie 1",
        "ethtool -K tun0 tx-udp-segmentation off",
        "for i in 1 2; do true; done",
        "sh -c true",
        "A=1 true",
        "sleep 1 &",
        "echo 'open",
        "source other.sh",
        "echo 1 > /sys/module/tcp_bbr/parameters/x",
        "$(reboot)",
    ] {
        let error = after(text).unwrap_err();
        assert!(error.is_unsupported() && error.at().line == 3, "{text}: {error}");
    }
}

#[test]
fn a_wrong_value_is_an_error_and_changes_nothing() {
    for text in [
        "sysctl -q net.ipv4.tcp_sack=2",
        "sysctl -q net.ipv4.tcp_sack=yes",
        "sysctl -q net.ipv4.tcp_rmem='1 2'",
        "sysctl -q net.ipv4.tcp_rmem='1 2 3 4'",
        "sysctl -q net.ipv4.tcp_congestion_control=$X",
        "ip link set dev tun0 mtu huge",
        "ip route add default initcwnd many",
        "ethtool -K tun0 tso maybe",
        "ethtool -K tun0 tso",
    ] {
        let mut setup = Setup::kernel();
        let error =
            setup.apply(&format!("sysctl -q net.ipv4.tcp_ecn=1; {text}"), Pos::default()).unwrap_err();
        assert!(matches!(error, Error::Value { .. }), "{text}: {error}");
        assert_eq!(setup, Setup::kernel(), "{text}");
    }
}

#[test]
fn options_of_a_script() {
    let of = |lines: &str| {
        let script = parse(&format!("{lines}\n0 close(3) = 0"), &[], &Limits::default()).unwrap();
        Options::of(&script.options)
    };
    assert_eq!(of("").unwrap(), Options::default());
    let all =
        of("--tolerance_usecs=100 --tolerance_percent=2.5 --tcp_ts_tick_usecs=1000 --tcp_ts_ecr_scaled \
                  --strict_segments --mtu=1400 --mss=500 --local_ip=fd00::1 --init_scripts=a.sh,defaults.sh")
        .unwrap();
    assert_eq!(
        all,
        Options {
            tolerance: Span::from_us(100),
            tolerance_permille: 25,
            ts_tick: Some(Span::from_ms(1)),
            ts_ecr_scaled: true,
            strict_segments: true,
            mtu: Some(1400),
            ipv6: false,
            gro_mss: Some(500),
            init_scripts: vec!["a.sh".into(), "defaults.sh".into()],
        }
    );
    assert_eq!(of("--tcp_ts_tick_usecs=0").unwrap().ts_tick, None);
    assert!(of("--ip_version=ipv6").unwrap().ipv6);
    assert!(of("--ip_version=ipv5").is_err());
    assert!(of("--wire_server").unwrap_err().is_unsupported());
    assert!(matches!(of("--tolerance_usecs=soon").unwrap_err(), Error::Value { .. }));
}
