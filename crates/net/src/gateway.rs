//! The router that packets leave through.

use std::io;
use std::net::IpAddr;

/// The router that packets to `remote` go through when they leave from `local`, an address of this
/// host; `None` if they need none, or cannot leave. A router of IPv6 mostly has a link-local
/// address.
///
/// # Errors
/// Routes cannot be read: this is known on Linux only.
pub fn gateway_of(local: IpAddr, remote: IpAddr) -> io::Result<Option<IpAddr>> {
    #[cfg(target_os = "linux")]
    {
        let all = crate::interfaces::host_addresses()?;
        let Some(home) = all.into_iter().find(|address| address.ip == local) else {
            return Ok(None);
        };
        let mut kernel = crate::rtnetlink::Kernel::open()?;
        Ok(kernel.gateway(remote, local, home.index))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (local, remote);
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_this_host_from_loopback_or_from_another_hosts_address() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (local, remote) in
            [("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "192.0.2.1"), ("192.0.2.7", "192.0.2.1")]
        {
            assert_eq!(gateway_of(ip(local), ip(remote)).unwrap(), None, "{local} {remote}");
        }
    }
}
