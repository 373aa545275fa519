export { createClient } from "./client.js";
export type { ErrorCode } from "./http/error-code.js";
export {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  EffectFailed,
  EffectInDoubt,
  ForbiddenError,
  InvalidRequestError,
  InvalidStateError,
  NotFoundError,
  type Problem,
  RateLimitedError,
  ReusedError,
  ThreadDestroyedError,
  ThreadkeepError,
  TimeoutError,
  TooLargeError,
  UnavailableError,
  VersionMismatchError,
} from "./http/errors.js";
export { NOT_DONE } from "./thread/not-done.js";
export { threadIdFor } from "./thread-id.js";
export type * from "./types/checkpoint.js";
export type * from "./types/client.js";
export type * from "./types/effect.js";
export type * from "./types/events.js";
export type * from "./types/history.js";
export type * from "./types/json.js";
export type * from "./types/kv.js";
export type * from "./types/operation.js";
export type * from "./types/options.js";
export type * from "./types/receipt.js";
export type * from "./types/scope.js";
export type * from "./types/standard-schema.js";
export type * from "./types/state.js";
export type * from "./types/thread.js";
export type * from "./types/turn.js";
