//! Work that continues after the response. Run `cargo run --example background`, then `curl -b jar -c jar -d ''
//! http://127.0.0.1:3000/report`, and a second later `curl -b jar -c jar http://127.0.0.1:3000/report`.

use std::{convert::Infallible, error::Error, time::Duration, time::Instant};

use actix_web::{App, HttpServer, get, post};
use threadkeep::{ApiError, RequestState, Session, Thread, Threads};

/// Start time of the request. The handler sets it, and the callback reads it at the end of the request.
struct Begun(Instant);

#[post("/report")]
async fn begin(thread: Thread, session: Session, request: RequestState) -> &'static str {
    request.insert(Begun(Instant::now()));
    session.wait_until(async move {
        // the report takes time, but the client already has the response
        actix_web::rt::time::sleep(Duration::from_millis(500)).await;
        if let Err(error) = write(&thread).await {
            eprintln!("the report is lost: {error}");
        }
    });
    // the callback runs when the response is ready, and is retried if it fails
    session.try_on_completed(move |completed| {
        let begun = request.get::<Begun>();
        async move {
            let elapsed = begun.map(|begun| begun.0.elapsed());
            println!("{} after {elapsed:?}", completed.status);
            Ok::<_, Infallible>(())
        }
    });
    "begun\n"
}

async fn write(thread: &Thread) -> Result<(), ApiError> {
    thread.state().set("report", "all is well")?;
    thread.flush().await?;
    Ok(())
}

#[get("/report")]
async fn show(thread: Thread) -> Result<String, ApiError> {
    let report: Option<String> = thread.state().get("report").await?;
    Ok(report.unwrap_or_else(|| "not yet".into()))
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let threads = Threads::in_memory();
    let shared = threads.clone();
    let server =
        HttpServer::new(move || App::new().wrap(shared.clone()).service(begin).service(show));
    server.bind("127.0.0.1:3000")?.run().await?;
    let unfinished = threads.shutdown(Duration::from_secs(10)).await;
    println!("{unfinished} reports did not end in time");
    Ok(())
}
