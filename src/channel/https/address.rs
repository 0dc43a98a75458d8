//! Which addresses are of the open internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a name in somebody else's hands may lead here: globally reachable by IANA's special-purpose
/// registries, and no way in disguise to an address that is not.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// Whether a host says by itself that it lies inside: an internal address, or a name of this machine (RFC 6761 6.3).
/// What any other name leads to is known once it is resolved.
#[must_use]
pub fn is_inside(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    bare.parse().is_ok_and(|address: IpAddr| !is_public(address)) || name == "localhost" || name.ends_with(".localhost")
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // This network, private, loopback.
        [0 | 10 | 127, ..] => true,
        // Shared by carriers.
        [100, second, ..] => second & 0xc0 == 64,
        // Link-local: where clouds keep their credentials.
        [169, 254, ..] | [192, 168, ..] => true,
        [172, second, ..] => second & 0xf0 == 16,
        // Protocol assignments, documentation, the old 6to4 relay, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast, reserved, broadcast.
        [first, ..] => first >= 224,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // NAT64 (RFC 6052): as good as what lies behind it.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))),
        // Protocol assignments (Teredo among them), documentation, 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast. All else is loopback, mapped or compatible IPv4, unique local, link-local, multicast, or
        // not given out.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_internet_is_public() {
        for public in [
            "1.1.1.1",
            "17.188.143.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2620:149:208:4309::9",
            "2001:200::1",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn a_host_may_say_by_itself_that_it_lies_inside() {
        for inside in
            ["127.0.0.1", "10.0.0.1", "[::1]", "::1", "[fd00::1]", "169.254.169.254", "LocalHost", "a.localhost."]
        {
            assert!(is_inside(inside), "{inside}");
        }
        // What these lead to, their resolution says.
        for open in ["1.1.1.1", "[2606:4700::1]", "push.example.com", "localhost.example", "127.1", "2130706433", ""] {
            assert!(!is_inside(open), "{open}");
        }
    }

    #[test]
    fn nothing_else_is() {
        for internal in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:1.1.1.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(internal.parse().unwrap()), "{internal}");
        }
    }
}
