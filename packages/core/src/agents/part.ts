// Where the parts of an agent come from.

/** Who brought a part of an agent: the name of a capability, or undefined for the agent's own definition. */
export interface Part<T> {
  readonly from: string | undefined
  readonly it: T
}

/** The parts of one kind, the agent's own first, then those of its capabilities in their order. */
export function partsOf<T, C extends { readonly name: string }>(
  own: readonly T[] | undefined,
  capabilities: readonly C[],
  of: (capability: C) => readonly T[] | undefined,
): Part<T>[] {
  return [
    ...(own ?? []).map((it) => ({ from: undefined, it })),
    ...capabilities.flatMap((capability) => (of(capability) ?? []).map((it) => ({ from: capability.name, it }))),
  ]
}
