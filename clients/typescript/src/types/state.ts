/** The state of a thread without a type argument: any key, any value. */
export type AnyState = Record<string, any>;

/** The keys of a state. */
export type Key<S> = Extract<keyof S, string>;

/** The value of a key, as it can be written. */
export type Value<S, K extends keyof S> = Exclude<S[K], undefined>;

/** The element of the array at a key. */
export type Element<S, K extends keyof S> = NonNullable<S[K]> extends readonly (infer E)[] ? E : never;

/** The keys whose values are arrays. */
export type ArrayKey<S> = {
  [K in Key<S>]-?: NonNullable<S[K]> extends readonly unknown[] ? K : never;
}[Key<S>];

/** The keys whose values are integers. */
export type CounterKey<S> = {
  [K in Key<S>]-?: NonNullable<S[K]> extends number | bigint ? K : never;
}[Key<S>];
