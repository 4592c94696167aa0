//! The interfaces that the system calls metered: traffic on them costs money.

use std::collections::BTreeSet;
use std::time::Duration;

/// NetworkManager answers within milliseconds. A host whose manager hangs is not kept waiting.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The interfaces that NetworkManager calls metered, as it does modems and phones that share their
/// connection unless the user says otherwise. It is asked by its command `nmcli`. Empty where that
/// is missing or does not answer within a second. Must be called within a tokio runtime whose I/O
/// and time drivers are enabled.
pub async fn metered_interfaces() -> BTreeSet<String> {
    if !cfg!(target_os = "linux") {
        return BTreeSet::new();
    }
    let mut command = tokio::process::Command::new("nmcli");
    let fields = "GENERAL.DEVICE,GENERAL.IP-IFACE,GENERAL.METERED";
    command.args(["--terse", "--fields", fields, "device", "show"]);
    command.env("LC_ALL", "C").stdin(std::process::Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(ANSWER_MAX, command.output()).await {
        Ok(Ok(output)) if output.status.success() => {
            metered_of(&String::from_utf8_lossy(&output.stdout))
        }
        _ => BTreeSet::new(),
    }
}

/// Reads the terse output: a line for each field, an empty one after each device.
fn metered_of(text: &str) -> BTreeSet<String> {
    let mut metered = BTreeSet::new();
    for device in text.split("\n\n") {
        let field = |name: &str| {
            let lines = device.lines().filter_map(|line| line.split_once(':'));
            let mut values = lines.filter(|(key, _)| *key == name).map(|(_, value)| value.trim());
            values.next().filter(|value| !value.is_empty())
        };
        // "yes", or "yes (guessed)".
        if field("GENERAL.METERED").is_some_and(|value| value.starts_with("yes")) {
            // A modem has a device that packets do not go through.
            let name = field("GENERAL.IP-IFACE").or(field("GENERAL.DEVICE"));
            metered.extend(name.map(str::to_owned));
        }
    }
    metered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_network_manager_calls_metered_is_found() {
        let text = "GENERAL.DEVICE:wlan0\nGENERAL.IP-IFACE:wlan0\nGENERAL.METERED:no (guessed)\n\n\
                    GENERAL.DEVICE:cdc-wdm0\nGENERAL.IP-IFACE:wwan0\nGENERAL.METERED:yes (guessed)\n\n\
                    GENERAL.DEVICE:usb0\nGENERAL.IP-IFACE:\nGENERAL.METERED:yes\n\n\
                    GENERAL.DEVICE:lo\nGENERAL.METERED:unknown\n";
        let found: Vec<_> = metered_of(text).into_iter().collect();
        assert_eq!(found, ["usb0", "wwan0"]);
    }

    #[test]
    fn other_output_names_nothing() {
        for text in
            ["", "Error: NetworkManager is not running.\n", ":::\n\n::", "GENERAL.METERED:yes"]
        {
            assert_eq!(metered_of(text), BTreeSet::new(), "{text:?}");
        }
    }
}
