import { InvalidStateError } from "../http/errors.js";
import type { StandardSchemaV1 } from "../types/standard-schema.js";

export async function validate<S>(state: unknown, schema: StandardSchemaV1<unknown, S>): Promise<S> {
  const result = await schema["~standard"].validate(state);
  if (result.issues) throw new InvalidStateError(result.issues);
  return result.value;
}
