use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use super::callers::Callers;
use super::{
    CorsOrigins, Fault, Given, McpSettings, ModelSettings, Provenance, RedisUrl, RedisUrlError,
    SettingsError, TraceSettings, Values, Warning, callers, identity, listen, log_filter, machine,
    mcp, models, otlp, public_url, rates, redis_certificate, webhooks,
};
use threadkeep_domain::scope::{HistoryLimit, ScopePolicies};
use threadkeep_domain::{
    BODY_MAX_BYTES, EntryPolicy, KeyRing, Lifetime, RateLimits, ReservedKeys, Retention, TTL_MAX,
    TTL_MIN, ThreadPolicy, is_name,
};
use threadkeep_identity::{ApiKeys, CookieSettings, TrustedProxies};
use threadkeep_store_redis::ClientCertificate;
use threadkeep_webhooks::Endpoint;

/// The settings of a server. The `Debug` output contains no secrets.
#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    /// Address and port that serve metrics, instead of `listen`.
    pub metrics_listen: Option<SocketAddr>,
    /// Threads that serve requests; by default one per core.
    pub workers: Option<NonZeroUsize>,
    pub worker_max_connections: usize,
    pub worker_max_body_bytes: u64,
    pub keep_alive: Duration,
    /// Time limit for requests that are still running after `drain`.
    pub shutdown: Duration,
    /// How long the server continues to accept requests after SIGTERM, while `/readyz` answers 503.
    pub drain: Duration,
    pub store: StoreSettings,
    pub policy: ThreadPolicy,
    pub max_threads_per_owner: Option<NonZeroU64>,
    /// State keys that only callers with an API key may write.
    pub reserved_keys: ReservedKeys,
    pub entries: EntryPolicy,
    pub scopes: ScopePolicies,
    /// Idle lifetime of conversations that `OpenAI` clients create.
    pub conversation_ttl: Duration,
    pub rates: RateLimits,
    /// True if the server emits an additional event at the end of each request for a thread.
    pub session_events: bool,
    /// Prefix of links to this service. If empty, links contain only the path.
    pub public_url: String,
    pub webhooks: Vec<Endpoint>,
    pub webhook_allow_private: bool,
    /// `None` generates a random key for this run.
    pub signing_keys: Option<KeyRing>,
    /// How long all replicas must have had a signing key before that key is used to sign.
    pub signing_key_wait: Duration,
    pub api_keys: ApiKeys,
    pub cookie: CookieSettings,
    pub callers: Callers,
    pub proxies: TrustedProxies,
    pub cors: CorsOrigins,
    pub mcp: McpSettings,
    pub models: Option<ModelSettings>,
    pub traces: Option<TraceSettings>,
    pub log: LogSettings,
    pub warnings: Vec<Warning>,
    /// Each value with its source, with secrets masked.
    pub provenance: Provenance,
}

#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// The Redis server; `None` stores threads in the memory of this process.
    pub redis_url: Option<RedisUrl>,
    pub redis_certificate: Option<ClientCertificate>,
    pub key_prefix: String,
    pub timeout: Duration,
    /// Maximum number of calls in flight on each shared connection to Redis.
    pub max_in_flight: usize,
    /// Maximum number of calls that are queued for each shared connection to Redis.
    pub max_waiting: usize,
    pub retention: Retention,
    pub embedded_store_max_bytes: u64,
    /// Number of Redis replicas that must receive a write before the server acknowledges it.
    pub wait_replicas: u16,
    pub read_cache_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// Validated directives of [`EnvFilter`](tracing_subscriber::EnvFilter).
    pub filter: String,
    pub format: LogFormat,
    pub requests: bool,
    /// Responses that take at least this long are logged as slow. `None` disables these log lines.
    pub slow: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    Json,
    Text,
}

impl Settings {
    /// Parses merged settings. Errors name the setting and the source of its value.
    pub fn parse(mut values: Values) -> Result<Self, SettingsError> {
        let provenance = values.provenance();
        Self::read(&mut values, provenance)
    }

    pub(super) fn read(values: &mut Values, provenance: Provenance) -> Result<Self, SettingsError> {
        let mut warnings: Vec<_> = values.renamed().collect();
        let listen = listen::read(&values.take("listen"))?;
        let has_proxies = values.is_filled("trusted_proxies");
        let workers = values
            .take("workers")
            .within(0..=512, "a number of threads, 0 to 512")?;
        let rule = "a number of connections, 1 to 1000000";
        let worker_max_connections = values
            .take("worker_max_connections")
            .within(1..=1_000_000, rule)?;
        let rule = "a number of seconds, 1 to 3600";
        let keep_alive_seconds = values.take("keep_alive_seconds").within(1..=3_600, rule)?;
        let entries = entries(values)?;
        let largest_body = BODY_MAX_BYTES.max(entries.max_bytes);
        let rule = "a number of bytes, at least 2097152 and no less than kv_max_bytes";
        let worker_max_body_bytes = values
            .take("worker_max_body_bytes")
            .within(largest_body..=MEMORY_BYTES_MAX, rule)?;
        let (webhooks, webhook_allow_private) = webhooks::endpoints(values)?;
        let public_url = public_url::read(&values.take("public_url"))?;
        let callers = callers::read(values, has_proxies)?;
        let cors = CorsOrigins::read(&values.take("cors_origins"))?;
        let signing_keys = identity::signing_keys(values, listen, &mut warnings)?;
        let api_keys = identity::api_keys(values, listen, &mut warnings)?;
        let models = models::read(values, &api_keys, &mut warnings)?;
        Ok(Self {
            listen,
            metrics_listen: listen::read_optional(&values.take("metrics_listen"))?,
            mcp: mcp::read(&values.take("mcp_allowed_hosts"), &public_url, &cors)?,
            public_url,
            cors,
            webhooks,
            webhook_allow_private,
            workers: NonZeroUsize::new(workers as usize),
            worker_max_connections: worker_max_connections as usize,
            worker_max_body_bytes,
            keep_alive: Duration::from_secs(keep_alive_seconds),
            shutdown: seconds(&values.take("shutdown_seconds"), 0)?,
            drain: seconds(&values.take("drain_seconds"), 0)?,
            store: store(values)?,
            policy: policy(values)?,
            max_threads_per_owner: values
                .take("max_threads_per_owner")
                .parse("a number from 0")
                .map(NonZeroU64::new)?,
            reserved_keys: values
                .take("reserved_keys")
                .parse("up to 64 keys, or key prefixes followed by `*`")?,
            entries,
            scopes: scopes(values)?,
            conversation_ttl: conversation_ttl(values)?,
            rates: rates::read(values)?,
            session_events: values.take("session_events").parse("true or false")?,
            signing_keys,
            signing_key_wait: signing_key_wait(values)?,
            api_keys,
            cookie: identity::cookie(values)?,
            callers,
            proxies: identity::proxies(values)?,
            models,
            traces: otlp::read(values)?,
            log: log(values)?,
            warnings,
            provenance,
        })
    }
}

/// Maximum value of memory settings, in bytes. More than any machine has, but small enough that sums cannot overflow.
const MEMORY_BYTES_MAX: u64 = 1 << 40;

fn signing_key_wait(values: &mut Values) -> Result<Duration, SettingsError> {
    let rule = "a number of seconds, 0 to 86400";
    let wait = values.take("signing_key_wait_seconds");
    Ok(Duration::from_secs(wait.within(0..=86_400, rule)?))
}

fn store(values: &mut Values) -> Result<StoreSettings, SettingsError> {
    let url = values.take("redis_url");
    let redis_url = url.filled().map(str::parse).transpose();
    let redis_url = redis_url.map_err(|RedisUrlError(rule)| url.refuse(Fault::Expected(rule)))?;
    let redis_certificate = redis_certificate::read(values, redis_url.as_ref())?;
    let key_prefix = values.take("key_prefix");
    if !is_name(key_prefix.text(), 32) {
        let rule = "1 to 32 of A-Z, a-z, 0-9, `.`, `_` and `-`";
        return Err(key_prefix.refuse(Fault::Expected(rule)));
    }
    let timeout_ms = values
        .take("store_timeout_ms")
        .within(1..=60_000, "a number of milliseconds, 1 to 60000")?;
    let wait_replicas = values
        .take("wait_replicas")
        .within(0..=100, "a number of replicas, 0 to 100")?;
    let rule = "a number of bytes, 0 to 1125899906842624";
    let embedded_store_max_bytes = values
        .take("embedded_store_max_bytes")
        .within(0..=1 << 50, rule)?;
    let read_cache_bytes = values.take("read_cache_bytes").within(0..=1 << 50, rule)?;
    let rule = "a number of calls, 1 to 65536";
    let max_in_flight = values
        .take("store_max_in_flight")
        .within(1..=65_536, rule)?;
    let rule = "a number of calls, 0 to 1048576";
    let max_waiting = values
        .take("store_max_waiting")
        .within(0..=1_048_576, rule)?;
    Ok(StoreSettings {
        redis_url,
        redis_certificate,
        key_prefix: key_prefix.text().into(),
        timeout: Duration::from_millis(timeout_ms),
        max_in_flight: max_in_flight as usize,
        max_waiting: max_waiting as usize,
        retention: Retention {
            grace: seconds(&values.take("grace_seconds"), 1)?,
            archive: seconds(&values.take("archive_seconds"), 0)?,
            log: seconds(&values.take("event_log_seconds"), 1)?,
        },
        embedded_store_max_bytes: match embedded_store_max_bytes {
            0 => machine::memory_bytes() / 4,
            bytes => bytes,
        },
        wait_replicas: wait_replicas as u16,
        read_cache_bytes,
    })
}

fn policy(values: &mut Values) -> Result<ThreadPolicy, SettingsError> {
    let max_age = seconds(&values.take("thread_max_age_seconds"), 0)?;
    let max_keys = values
        .take("max_keys")
        .within(1..=u64::from(u32::MAX), "a number from 1")?;
    Ok(ThreadPolicy {
        max_keys: max_keys as u32,
        ttl: seconds(&values.take("thread_ttl_seconds"), 1)?,
        max_age: Some(max_age).filter(|age| !age.is_zero()),
        tombstone: seconds(&values.take("tombstone_seconds"), 0)?,
        ..ThreadPolicy::THREAD
    })
}

fn entries(values: &mut Values) -> Result<EntryPolicy, SettingsError> {
    let rule = "a number of bytes, 1 to 16777216";
    let max_bytes = values.take("kv_max_bytes").within(1..=16_777_216, rule)?;
    let rule = "a number of seconds, 0 to 31536000";
    let longest = Lifetime::LONGEST.as_secs();
    let ttl = values.take("kv_default_ttl_seconds");
    Ok(EntryPolicy {
        max_bytes,
        lifetime: Lifetime::from_seconds(ttl.within(0..=longest, rule)?),
    })
}

fn scopes(values: &mut Values) -> Result<ScopePolicies, SettingsError> {
    let max_bytes = values
        .take("history_max_bytes")
        .within(1..=HISTORY_BYTES_MAX, "a number of bytes, 1 to 1073741824")?;
    Ok(ScopePolicies {
        session_ttl: seconds(&values.take("session_ttl_seconds"), 1)?,
        run_ttl: seconds(&values.take("run_ttl_seconds"), 1)?,
        history: HistoryLimit {
            max_bytes,
            drops_oldest: values.take("history_drop_oldest").parse("true or false")?,
        },
    })
}

fn conversation_ttl(values: &mut Values) -> Result<Duration, SettingsError> {
    let rule = "a number of seconds, 60 to 946080000";
    let bounds = TTL_MIN.as_secs()..=TTL_MAX.as_secs();
    let seconds = values.take("conversation_ttl_seconds");
    Ok(Duration::from_secs(seconds.within(bounds, rule)?))
}

/// Maximum value of `history_max_bytes`. More than any conversation needs, but small enough that sums cannot overflow.
const HISTORY_BYTES_MAX: u64 = 1 << 30;

fn log(values: &mut Values) -> Result<LogSettings, SettingsError> {
    let filter = values.take("log");
    let checked = log_filter::checked(filter.text());
    let formats = [
        ("auto", LogFormat::Auto),
        ("json", LogFormat::Json),
        ("text", LogFormat::Text),
    ];
    let format = values.take("log_format");
    Ok(LogSettings {
        filter: checked.map_err(|error| filter.refuse(Fault::Other(error.into())))?,
        format: format.one_of(&formats, "auto, json or text")?,
        requests: values.take("access_log").parse("true or false")?,
        slow: slow_log(values)?,
    })
}

fn slow_log(values: &mut Values) -> Result<Option<Duration>, SettingsError> {
    let rule = "a number of milliseconds, 0 to 3600000";
    let slow_ms = values.take("slow_log_ms").within(0..=3_600_000, rule)?;
    Ok((slow_ms > 0).then(|| Duration::from_millis(slow_ms)))
}

/// Maximum value of settings in seconds, about 30 years. Fits into the packed TTL of a thread, and is small enough that
/// sums of times cannot overflow.
const SECONDS_MAX: u64 = 1_000_000_000;

fn seconds(given: &Given, min: u64) -> Result<Duration, SettingsError> {
    let rule = match min {
        0 => "a number of seconds, 0 to 1000000000",
        _ => "a number of seconds, 1 to 1000000000",
    };
    let seconds = given.within(min..=SECONDS_MAX, rule)?;
    Ok(Duration::from_secs(seconds))
}
