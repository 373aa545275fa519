use crate::client::Client;

pub async fn sample(client: &Client, has: &[&str]) -> f64 {
    let metrics = client.get("/metrics").ok().await.text();
    metrics
        .lines()
        .filter(|line| !line.starts_with('#') && has.iter().all(|text| line.contains(text)))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}
