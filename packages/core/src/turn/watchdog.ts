// Ends a turn that has been in one state for too long. Its worker keeps time itself; this is for those that cannot.

import { OxbowError } from '../errors.ts'
import type { SessionLog } from '../journal/session-log.ts'
import { type StateLimits, stateDeadline } from '../state/deadlines.ts'
import type { TurnState } from '../state/state.ts'
import { whatFollows } from './decide.ts'
import type { TurnRun } from './turn-run.ts'

export interface Watch {
  readonly worker: string
  /** When this process began to look, or when the clock of the machine last jumped. */
  startedAt: number
  alive(worker: string): Promise<boolean>
  /** The work on this session in this process. */
  run(log: SessionLog): TurnRun | undefined
  /** Logs the error and returns its reference. */
  report(log: SessionLog, turnId: string, error: OxbowError): string
}

export async function endIfStuck(watch: Watch, log: SessionLog, limits: StateLimits, now: number): Promise<void> {
  const { turn } = log.state
  if (turn === undefined || !isStuck(turn, limits, watch.startedAt, now)) return
  const holder = turn.claim?.worker
  // Its worker waits for an answer that the turn cannot do without.
  if (watch.run(log)?.waitsForIdentity) return
  // A turn of a dead worker is resumed, not ended.
  if (holder !== undefined && holder !== watch.worker && !(await watch.alive(holder))) return
  const { turnId, task } = turn
  const message = `The turn was stopped: it had been ${task.state} for ${now - task.since} ms.`
  const error = new OxbowError('state_timeout', message, { details: { state: task.state } })
  const failure = { code: error.code, message, reference: watch.report(log, turnId, error) }
  // Our own worker ends it with the text that was shown so far; one that fails to do so loses the turn at the next sweep.
  const run = watch.run(log)
  if (run?.turnId === turnId && run.stopped === undefined) return run.stop('failure', failure)
  await log.append((draft) => {
    const open = draft.state.turn
    if (open?.turnId !== turnId || !isStuck(open, limits, watch.startedAt, now)) return
    draft.add(...whatFollows(open, { type: 'finish', ending: { type: 'turn.failed', error: failure } }))
  })
}

/** Time without a worker does not count, except while waiting for people. */
function isStuck(turn: TurnState, limits: StateLimits, startedAt: number, now: number): boolean {
  const absent = turn.paused === undefined ? Math.max(0, startedAt - turn.task.since) : 0
  return stateDeadline(turn, limits) + absent <= now
}
