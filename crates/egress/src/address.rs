use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// Returns whether an address is on the public internet. Rejects loopback, private, link-local, carrier-grade NAT,
/// multicast and reserved addresses.
///
/// Follows the IANA special-purpose registries for [IPv4](https://www.iana.org/assignments/iana-ipv4-special-registry)
/// and [IPv6](https://www.iana.org/assignments/iana-ipv6-special-registry). If an IPv6 address contains an IPv4
/// address, checks the IPv4 address.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(address) => is_public_v4(address),
            None => is_public_v6(address),
        },
    }
}

/// Returns the IP address in the host of a URL, in any notation, or `None` if the host is a name.
pub fn address_of(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
    )
}

/// Returns the IPv4 address in a mapped (`::ffff:0:0/96`) or NAT64 (`64:ff9b::/96`) address.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let bits = u32::from(high) << 16 | u32::from(low);
            Some(Ipv4Addr::from_bits(bits))
        }
        _ => None,
    }
}

/// Accepts global unicast addresses (`2000::/3`), except those for documentation or protocol assignments, such as
/// Teredo. Also rejects 6to4 addresses, because they can reach any IPv4 address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use ipnet::IpNet;
    use proptest::prelude::*;

    use super::*;

    const PRIVATE: [&str; 38] = [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "::1/128",
        "::/96",
        "::ffff:10.0.0.0/104",
        "::ffff:127.0.0.0/104",
        "::ffff:169.254.0.0/112",
        "64:ff9b::10.0.0.0/104",
        "64:ff9b::127.0.0.0/104",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001::/32",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "4000::/2",
        "5f00::/16",
        "fc00::/7",
        "fd00:ec2::254/128",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
        "8000::/1",
    ];

    fn nets() -> impl Iterator<Item = IpNet> {
        PRIVATE.into_iter().map(|net| net.parse().unwrap())
    }

    fn within(net: IpNet, random: u128) -> IpAddr {
        match net {
            IpNet::V4(net) => {
                let host = random as u32 & u32::from(net.hostmask());
                IpAddr::V4((u32::from(net.network()) | host).into())
            }
            IpNet::V6(net) => {
                let host = random & u128::from(net.hostmask());
                IpAddr::V6((u128::from(net.network()) | host).into())
            }
        }
    }

    #[test]
    fn an_ip_address_is_recognized_in_every_notation() {
        for text in [
            "http://127.0.0.1",
            "http://2130706433/",
            "http://0x7f.1",
            "http://0177.0.0.1:80/a",
            "http://127.0.0.1./",
        ] {
            let address = address_of(&text.parse().unwrap());
            assert_eq!(address, Some([127, 0, 0, 1].into()), "{text}");
        }
        let mapped = address_of(&"http://[::ffff:127.0.0.1]".parse().unwrap());
        assert_eq!(mapped, "::ffff:127.0.0.1".parse().ok());
        let named = address_of(&"http://localhost".parse().unwrap());
        assert_eq!(named, None);
    }

    #[test]
    fn the_ends_of_each_private_range_are_private() {
        for net in nets() {
            assert!(!is_public(net.network()), "{net}");
            assert!(!is_public(net.broadcast()), "{net}");
        }
    }

    #[test]
    fn neighbours_of_private_ranges_are_public() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2001:200::",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    proptest! {
        #[test]
        fn no_address_of_a_private_range_is_public(random: u128, index in 0..PRIVATE.len()) {
            let net = PRIVATE[index].parse().unwrap();

            prop_assert!(!is_public(within(net, random)));
        }

        #[test]
        fn an_ipv4_address_is_classified_alike_in_every_notation(bits: u32) {
            let plain = Ipv4Addr::from_bits(bits);
            let is_private = nets().any(|net| net.contains(&IpAddr::V4(plain)));

            prop_assert_eq!(is_public(plain.into()), !is_private);
            prop_assert_eq!(is_public(plain.to_ipv6_mapped().into()), !is_private);
            let translated = Ipv6Addr::from_bits(0x64_ff9b << 96 | u128::from(bits));
            prop_assert_eq!(is_public(translated.into()), !is_private);
        }
    }
}
