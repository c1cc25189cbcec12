// Whether the worker that claimed a turn still holds it.
import { OxbowError } from '../errors.ts'
import type { SessionLog } from '../journal/session-log.ts'
import type { Workers } from '../ports.ts'

/** A worker that is silent for this long may be stopped or hang; callers who wait for it should know. */
const SUSPICIOUS_MS = 2_000

/**
 * Returns a function that checks whether another worker than `self` holds the turn of a session. `report` receives a
 * `turn_held` once for each claim whose worker sends no heartbeats: its turn is resumed when its lease ends.
 *
 * @example if (await isHeld(log)) return undefined
 */
export function holderCheck(
  workers: Workers,
  self: string,
  report: (log: SessionLog, turnId: string, error: OxbowError) => void,
): (log: SessionLog) => Promise<boolean> {
  const reported = new Set<string>()
  return async (log) => {
    const { turn } = log.state
    const { worker, epoch } = turn?.claim ?? {}
    if (turn === undefined || worker === undefined || worker === self) return false
    const status = await workers.status(worker)
    if (status === undefined || !status.alive) return false
    const claim = `${turn.turnId} ${epoch}`
    if (status.silentMs < SUSPICIOUS_MS) reported.delete(claim)
    else if (!reported.has(claim)) {
      reported.add(claim)
      report(log, turn.turnId, heldError(turn.turnId, status))
    }
    return true
  }
}

const heldError = (turnId: string, { host, pid, silentMs }: { host: string; pid: number; silentMs: number }) =>
  new OxbowError(
    'turn_held',
    `Turn ${turnId} is held by process ${pid} on ${host}, which has given no sign of life for ${Math.round(silentMs)} ms. ` +
      'It is resumed when the lease of that process ends.',
    { retryable: true, details: { turnId, host, pid, silentMs } },
  )
