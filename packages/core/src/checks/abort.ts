// Reactions to an abort signal, without listeners that stay behind.

/** Calls `react` once, when the signal fires or at once if it has fired. Returns how to forget it. */
export function onAbort(signal: AbortSignal | undefined, react: () => unknown): () => void {
  if (signal === undefined) return () => {}
  const listener = (): void => void react()
  if (signal.aborted) listener()
  else signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}

/** Resolves when the signal fires, or has fired. `forget` removes the listener. */
export function whenAborted(signal: AbortSignal): { readonly promise: Promise<void>; readonly forget: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { promise, forget: onAbort(signal, resolve) }
}
