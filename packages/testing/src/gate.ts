/** A barrier that a test opens to let the other side continue. */
export interface Gate {
  /** Resolves when somebody waits at the gate. */
  readonly reached: Promise<void>
  /** Lets everybody through, now and later. */
  open(): void
  /** Awaited by the side that is held. */
  pass(): Promise<void>
}

/**
 * Makes a closed gate. Put it into a reply to hold the stream there.
 *
 * @example
 * const held = gate()
 * const server = await scriptedModel({ scripts: { '*': [{ text: 'one two', hold: { atChunk: 1, gate: held } }] } })
 * // … start the request, then:
 * await held.reached // the server has sent one chunk and waits
 * held.open()
 */
export function gate(): Gate {
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  return {
    reached: reached.promise,
    open: () => opened.resolve(),
    pass: () => {
      reached.resolve()
      return opened.promise
    },
  }
}
