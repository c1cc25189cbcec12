// The loop: decide and perform, until the turn ends, pauses, or is claimed by another worker.

import type { Agent } from '../agents/agent-type.ts'
import { onAbort } from '../checks/abort.ts'
import { OxbowError } from '../errors.ts'
import type { Action } from '../turn/decide.ts'
import { ClaimLost, type TurnRun } from '../turn/turn-run.ts'
import { act, withdrawQuestions } from './act.ts'
import { compact } from './compact.ts'
import { think } from './think.ts'
import { checkOutput } from './validate-output.ts'

/** Runs the turn until there is nothing left for this worker. Rejects only when the journal cannot be written. */
export async function workOnTurn(run: TurnRun, agent: Agent): Promise<void> {
  run.log.onChanged = () => watchOver(run)
  watchOver(run)
  try {
    // The principal's rights may have changed since the input, however long ago that was.
    if (run.waited && run.turn().interrupt === undefined && !(await run.refreshPrincipal())) {
      await withdrawQuestions(run)
      run.settle()
      return await run.durable()
    }
    let worked = false
    const work = agent.hooks.agent(run.context, async () => {
      worked = true
      for (let action = run.next(); action.type !== 'wait'; action = run.next()) {
        if (run.stopped === 'shutdown' || run.stopped === 'claim_lost') return
        await performAction(run, action)
        if (run.log.ahead.turn?.turnId !== run.turnId) return
      }
      // Pauses that did not follow from another event, for example after too many recoveries.
      run.settle()
    })
    const abandoned = await Promise.race([work.then(() => false), stopGrace(run).then(() => true)])
    // Work that does not return has no outcome to wait for.
    if (abandoned) run.inFlight.clear()
    if (!worked) throw new OxbowError('middleware_invalid', 'A middleware did not call next() in onAgent.')
    if (run.stopped === 'interrupt' || run.stopped === 'failure') run.settle()
    await run.durable()
  } catch (error) {
    if (error instanceof ClaimLost || run.stopped === 'shutdown') return await drain(run)
    if (isStorageError(error)) throw error
    await failTurn(run, error)
  } finally {
    run.log.onChanged = undefined
    run.close()
  }
}

/** Waits until what this worker wrote before it stopped is stored. */
async function drain(run: TurnRun): Promise<void> {
  try {
    await run.durable()
  } catch (error) {
    if (isStorageError(error) && run.stopped !== 'shutdown') throw error
  }
}

/** How long hooks and tools may take to come back once the turn is to stop. */
const STOP_GRACE_MS = 5_000

/** Resolves when the turn was stopped and a hook has not returned: the hook is abandoned. */
function stopGrace(run: TurnRun): Promise<void> {
  return new Promise((resolve) => {
    const wait = (): void => {
      const timer = setTimeout(resolve, STOP_GRACE_MS)
      timer.unref()
    }
    onAbort(run.signal, wait)
  })
}

async function performAction(run: TurnRun, action: Exclude<Action, { type: 'wait' }>): Promise<void> {
  switch (action.type) {
    case 'compact':
      return compact(run, action)
    case 'act':
      return act(run, action.calls)
    case 'check':
      return checkOutput(run)
    case 'think':
      return action.begun ? think(run) : run.settle()
    case 'finish':
      await withdrawQuestions(run)
      return run.settle()
    case 'review':
      return run.settle()
  }
}

/** Reacts to what others have appended: an interrupt, or another worker's claim. */
function watchOver(run: TurnRun): void {
  const turn = run.held()
  if (turn?.interrupt !== undefined) run.stop('interrupt')
  else if (turn === undefined && !run.ended) run.stop('claim_lost')
}

const STORAGE = /^(storage|journal)_/
const isStorageError = (error: unknown): boolean => error instanceof OxbowError && STORAGE.test(error.code)

/** The engine or a middleware threw: the turn fails visibly, and the full error is in the log. */
async function failTurn(run: TurnRun, error: unknown): Promise<void> {
  // The turn was stopped and its waiting tools were informed: there is nothing to add.
  if (!run.signal.aborted || error !== run.signal.reason) failWith(run, error)
  try {
    run.settle()
    await run.durable()
  } catch (again) {
    if (!(again instanceof ClaimLost)) throw again
  }
}

function failWith(run: TurnRun, error: unknown): void {
  const reference = run.report(error)
  const message = error instanceof OxbowError ? error.message : 'Something went wrong inside the agent.'
  const code = error instanceof OxbowError ? error.code : 'internal_error'
  run.stop('failure', { code, message, reference })
}
