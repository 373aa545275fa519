use super::{CONFIG, PREFIX};

pub(super) const CLIENT_URL: &str = "THREADKEEP_URL";
pub(super) const CLIENT_API_KEY: &str = "THREADKEEP_API_KEY";
/// Environment variable that test suites use for the path of the program under test.
const PROGRAM: &str = "THREADKEEP_BIN";

/// Returns the upper-case name of the setting that a variable sets, or `None` if it does not set a setting.
pub(super) fn setting<'a>(variable: &'a str, value: &str) -> Option<&'a str> {
    let name = variable.strip_prefix(PREFIX)?;
    let is_other = [CONFIG, CLIENT_URL, CLIENT_API_KEY, PROGRAM].contains(&variable);
    (!is_other && !is_kubernetes_service(name, value)).then_some(name)
}

/// Returns whether Kubernetes has set the variable for a
/// [Service](https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables) called
/// `threadkeep` or `threadkeep-...`.
///
/// Kubernetes sets `THREADKEEP_PORT` to a URL. A plain port number there is therefore a setting with a wrong name.
fn is_kubernetes_service(name: &str, value: &str) -> bool {
    let words: Vec<_> = name.split('_').collect();
    match words[..] {
        [.., "SERVICE", "HOST"] => true,
        [.., "PORT"] if value.contains("://") => true,
        _ => words.windows(2).any(|pair| match pair {
            ["SERVICE", "PORT"] => true,
            ["PORT", number] => number.parse::<u16>().is_ok(),
            _ => false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_kubernetes_and_clients_are_not_settings() {
        for (variable, value) in [
            ("THREADKEEP_SERVICE_HOST", "10.0.0.1"),
            ("THREADKEEP_SERVICE_PORT", "8080"),
            ("THREADKEEP_SERVICE_PORT_HTTP", "8080"),
            ("THREADKEEP_PORT", "tcp://10.0.0.1:8080"),
            ("THREADKEEP_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
            ("THREADKEEP_PORT_8080_TCP_PROTO", "tcp"),
            ("THREADKEEP_PORT_8080_TCP_PORT", "8080"),
            ("THREADKEEP_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("THREADKEEP_REDIS_SERVICE_HOST", "10.0.0.1"),
            ("THREADKEEP_REDIS_PORT", "tcp://10.0.0.1:6379"),
            ("THREADKEEP_REDIS_PORT_6379_TCP_ADDR", "10.0.0.1"),
            ("THREADKEEP_BIN", "target/debug/threadkeep"),
            ("THREADKEEP_URL", "http://127.0.0.1:8080"),
            ("THREADKEEP_CONFIG", "threadkeep.toml"),
            ("PATH", "/bin"),
        ] {
            assert_eq!(setting(variable, value), None, "{variable}");
        }
    }

    #[test]
    fn similar_variables_are_treated_as_settings() {
        for (variable, value, name) in [
            ("THREADKEEP_PORT", "8080", "PORT"),
            ("THREADKEEP_LISTEN_PORT", "8080", "LISTEN_PORT"),
            ("THREADKEEP_SERVICE", "x", "SERVICE"),
            ("THREADKEEP_SUPPORT_8", "x", "SUPPORT_8"),
            ("THREADKEEP_WORKERS", "2", "WORKERS"),
        ] {
            assert_eq!(setting(variable, value), Some(name));
        }
    }
}
