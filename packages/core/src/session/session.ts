// The public face of one session.

import type { Agent } from '../agents/agent-type.ts'
import type { CompactedBody } from '../agents/compactor.ts'
import { approvalDecisions, type NamedDecision } from '../approvals/decide-approvals.ts'
import type { ApprovalDecision } from '../approvals/decision.ts'
import { isSamePerson, mayActFor } from '../authority.ts'
import { onAbort } from '../checks/abort.ts'
import { defined } from '../checks/defined.ts'
import { countOrNone } from '../checks/fields.ts'
import type { Schema, SchemaOutput } from '../checks/json-schema.ts'
import type { EngineInternals } from '../engine-internals.ts'
import { OxbowError } from '../errors.ts'
import type { Delegation, Event, EventBody, Failure, Principal, SessionItem } from '../events/types.ts'
import type { Build, Draft } from '../journal/draft.ts'
import { assertId, nameOfKey, newId } from '../journal/ids.ts'
import type { SessionLog } from '../journal/session-log.ts'
import { compactBetweenTurns } from '../perform/compact.ts'
import type { SessionKey } from '../ports.ts'
import { findTurn, SCHEMA_VERSION, type SessionState } from '../state/state.ts'
import { turnEvents } from '../state/turn-events.ts'
import { type TurnResult, turnResult } from '../state/turn-result.ts'
import { decide, whatFollows } from '../turn/decide.ts'
import { busyWith, checkChoices, checkDenied, checkSame } from './accepting.ts'
import { type Input, inputBlocks, type RunOptions, toInput, toTurnOptions } from './input.ts'
import { BY, COMPACT, checkOption, FOLLOW, RESULT, RUN, RUN_HINTS, STOP } from './option-fields.ts'
import { signalFor } from './signals.ts'
import { type Place, type Submitted, type TurnStream, turnReader } from './turn-stream.ts'

/** The output is undefined when the turn has no answer: it paused, was cancelled, or was ended by `stopWhen`. */
export type TypedResult<S extends Schema> = TurnResult & { readonly output: SchemaOutput<S> | undefined }

export interface Session {
  readonly key: SessionKey
  readonly agent: string
  /**
   * Runs one turn to its end or pause. Resolves with `finished`, `paused` or `cancelled`.
   * Behind a turn that waits for somebody it waits, too, for as long as it takes: see `whenBusy`.
   * @throws OxbowError with the failure's code when the turn failed; `details.turnId` names it
   */
  run<const S extends Schema>(input: Input, options: RunOptions & { output: S }): Promise<TypedResult<S>>
  run(input: Input, options?: RunOptions): Promise<TurnResult>
  /** The same, with every event and fragment of the turn. Leaving the loop does not stop the turn; `signal` does. */
  stream<const S extends Schema>(
    input: Input,
    options: RunOptions & { output: S },
  ): TurnStream & { readonly result: Promise<TypedResult<S>> }
  stream(input: Input, options?: RunOptions): TurnStream
  /**
   * The stream of a turn that exists, from its start to its end or next pause. For a turn that continues after a
   * decision. Its `result` rejects with `unknown_turn`, and so does the loop.
   */
  attach(turnId: string): TurnStream
  /** Stores the input and returns; the turn runs on. */
  submit(input: Input, options?: Omit<RunOptions, 'signal'>): Promise<Submitted>
  /** The result of a turn so far. Undefined for an unknown turn. */
  result(turnId: string): Promise<TurnResult | undefined>
  /**
   * Waits for the end of a turn, or for a pause that needs somebody: it waits through sleeps. Resolves and rejects like `run`. @throws OxbowError
   * `unknown_turn`
   */
  wait(turnId: string): Promise<TurnResult>
  /** Interrupts a turn (default: the open one). Resolves with its id, or undefined when no such turn is open. */
  interrupt(options?: { turnId?: string; reason?: string; principal?: Principal }): Promise<string | undefined>
  /**
   * Delivers the result of an external call, from the user of the turn. A second result for the same call is
   * refused.
   * @throws OxbowError `unknown_call`, `call_resolved`, `result_forbidden`
   */
  resolve(
    callId: string,
    result: { status?: 'success' | 'error'; content: Input },
    options?: { principal?: Principal },
  ): Promise<Submitted>
  /**
   * Sends a signal to the open turn: the first call that waits for its name (`context.waitFor`) receives the value, now
   * or when it begins to wait. The same `id` is delivered once.
   *
   * @param value JSON, at most 100,000 characters. Default: null.
   * @throws OxbowError `unknown_turn`, `signal_forbidden`, `signal_limit`, `invalid_option`
   */
  signal(
    name: string,
    value?: unknown,
    options?: { id?: string; turnId?: string; principal?: Principal },
  ): Promise<Submitted>
  /**
   * Decides on an approval, once. Without `approver` on the approval the user of the turn decides; with it,
   * a holder of that permission. Edited arguments are coerced, validated and judged at once, and once more before
   * they run.
   * @throws OxbowError `unknown_approval`, `approval_resolved`, `approval_expired`, `approval_forbidden`,
   * `rule_invalid`, `decision_invalid`, `arguments_invalid` (naming the field), `arguments_denied`; after each of them
   * the approval is unchanged
   */
  decide(approvalId: string, decision: ApprovalDecision, options?: { principal?: Principal }): Promise<Submitted>
  /**
   * Decides on several approvals of a turn: all of them in one append, or none. Those that rise from sub-agents are
   * checked with the others, and then decided one by one where they arose.
   * @throws OxbowError as `decide`; `decision_invalid` when two are about the same approval
   * @example await session.decideAll(approvals.map(({ approvalId }) => ({ approvalId, decision: { verdict: 'denied' }
   * })))
   */
  decideAll(decisions: readonly NamedDecision[], options?: { principal?: Principal }): Promise<Submitted>
  /**
   * Throws what `decide` would throw, without deciding: for callers with several decisions that must all succeed.
   */
  checkDecision(approvalId: string, decision: ApprovalDecision, options?: { principal?: Principal }): Promise<void>
  /** Ends an open turn with a failure that a surface has found. Resolves with whether there was one to end. */
  fail(turnId: string, failure: Failure): Promise<boolean>
  /** Pauses the open turn at its next step, until it is released. Resolves with its id. */
  pause(options?: { turnId?: string; reason?: string; principal?: Principal }): Promise<string | undefined>
  /** Resumes a turn that was paused manually, or parked after too many recoveries. */
  release(options?: { principal?: Principal }): Promise<void>
  /**
   * Makes the conversation shorter now, between two turns. `dryRun` stores nothing and calls no model: it returns
   * what would be removed. @throws OxbowError `no_compaction` (its agent cannot), `unknown_session`, `session_busy`
   */
  compact(options?: { dryRun?: boolean; signal?: AbortSignal }): Promise<CompactedBody>
  /** Stored events after `after` (default: from now on), then live ones and fragments, until the reader leaves. */
  follow(options?: { after?: number; signal?: AbortSignal }): AsyncIterableIterator<SessionItem>
  /** Stored events after `after`, at most 500. */
  events(after?: number): Promise<Event[]>
  /** The stored state, including everything that this process wrote before the call. */
  state(): Promise<SessionState>
}

/** `delegation`: the session is a child's, and its turns come from a parent. */
export function openSession(
  engine: EngineInternals,
  key: SessionKey,
  agentName: string,
  delegation?: Delegation,
): Session {
  const self = (principal: Principal | undefined): Principal => principal ?? { tenant: key.tenant, user: key.user }

  /** Passes the log to `work`, including appends of other processes. */
  async function withCurrentLog<T>(work: (log: SessionLog) => T | Promise<T>): Promise<T> {
    if (engine.stopping)
      throw new OxbowError('shutting_down', 'The service is stopping; try again in a moment.', { retryable: true })
    return engine.withCurrentLog(key, work)
  }

  /** Appends an input and makes sure that a worker runs it. */
  const appendAndWake = <T>(build: Build<T>): Promise<T> =>
    withCurrentLog(async (log) => {
      const value = await log.append(build)
      engine.ensureWorker(log)
      return value
    })

  function submit(input: Input, options: Omit<RunOptions, 'signal'>): Promise<Submitted> {
    const name = nameOfKey(key)
    const accepting = accept(input, options)
    const arriving = engine.arriving.get(name) ?? new Set()
    engine.arriving.set(name, arriving.add(accepting))
    const arrived = (): void => {
      arriving.delete(accepting)
      if (arriving.size === 0) engine.arriving.delete(name)
    }
    accepting.then(arrived, arrived)
    return accepting
  }

  async function accept(input: Input, options: Omit<RunOptions, 'signal'>): Promise<Submitted> {
    checkOption('the options of a turn', options, RUN, RUN_HINTS)
    const blocks = toInput(input)
    const turnId = options.turnId === undefined ? newId() : assertId(options.turnId, 'turnId')
    const principal = self(options.principal)
    const turnOptions = toTurnOptions(options)
    let epoch: number | undefined

    const start = (draft: Draft): Submitted => {
      epoch = undefined
      const after = draft.state.seq
      const agent = engine.agent(draft.state.agent || agentName)
      if (draft.state.seq === 0) draft.add(opened(key, agent, delegation))
      const known = findTurn(draft.state, turnId)
      if (known !== undefined) return { turnId: known.turnId, accepted: 'duplicate', after: known.startedSeq - 1 }
      checkDenied(turnOptions.deny, agent)
      checkChoices(turnOptions, agent)
      const busy = draft.state.turn
      if (busy !== undefined && (options.whenBusy === 'refuse' || options.failure !== undefined)) throw busyWith(busy)
      // Messages that join a turn run with its rights, so another user's message becomes a separate turn.
      if (busy !== undefined && options.whenBusy === 'steer' && isSamePerson(busy.principal, principal)) {
        draft.add({ type: 'turn.steered', turnId: busy.turnId, inputId: turnId, input: blocks, principal })
        return { turnId: busy.turnId, accepted: 'steered', after }
      }
      // Without a parent's authority it would run with more than it was opened with.
      if (draft.state.parent !== undefined && delegation === undefined)
        throw new OxbowError(
          'child_session',
          `${key.session} belongs to ${draft.state.parent.session}, which gives it its tasks. Write there, or steer a task that runs.`,
        )
      draft.add({
        type: 'turn.started',
        turnId,
        input: blocks,
        surface: options.surface ?? 'library',
        principal,
        agent: { name: agent.name, version: agent.version },
        options: turnOptions,
        ...(delegation && { delegation }),
      })
      if (busy !== undefined) return { turnId, accepted: 'queued', after }
      if (options.failure !== undefined) {
        draft.add({ type: 'turn.failed', turnId, error: options.failure })
        return { turnId, accepted: 'started', after }
      }
      if (leave === undefined) return { turnId, accepted: 'started', after }
      // A turn that starts here is unclaimed: claim it in the same append.
      epoch = 1
      draft.add({ type: 'turn.claimed', turnId, worker: engine.worker, epoch })
      const turn = draft.state.turn!
      draft.add(...whatFollows(turn, decide(turn, agent.limits)))
      return { turnId, accepted: 'started', after }
    }
    await engine.announce()
    const leave = engine.enter(delegation !== undefined)
    try {
      return await withCurrentLog(async (log) => {
        const submitted = await log.append(start)
        if (submitted.accepted === 'duplicate') await checkSame(log, submitted.after, turnId, blocks)
        engine.ensureWorker(log, epoch === undefined ? undefined : { epoch })
        return submitted
      })
    } finally {
      leave?.()
    }
  }

  async function* follow(after: number | undefined, signal: AbortSignal | undefined) {
    const reader = await withCurrentLog((log) => log.follow(after))
    const stop = onAbort(signal, () => reader.return?.())
    try {
      yield* reader
    } finally {
      stop()
    }
  }

  async function interrupt(
    options: { turnId?: string; reason?: string; principal?: Principal } = {},
  ): Promise<string | undefined> {
    checkOption('interrupt()', options, STOP)
    await Promise.allSettled(engine.arriving.get(nameOfKey(key)) ?? [])
    return appendAndWake((draft) => {
      const named = options.turnId ?? draft.state.turn?.turnId
      const known = named === undefined ? undefined : findTurn(draft.state, named)
      if (known === undefined || known.ended) return undefined
      const { turnId } = known
      draft.add({
        type: 'interrupt.requested',
        turnId,
        principal: self(options.principal),
        ...defined({ reason: options.reason }),
      })
      return turnId
    })
  }

  const placeOf = (turnId: string): Promise<Place> =>
    withCurrentLog((log) => {
      assertId(turnId, 'turnId')
      const known = findTurn(log.state, turnId)
      if (known !== undefined) {
        // The process of its worker may have ended or stopped.
        engine.ensureWorker(log)
        return { turnId: known.turnId, after: known.startedSeq - 1 }
      }
      throw new OxbowError('unknown_turn', `Unknown turn ${JSON.stringify(turnId)} in this session.`)
    })

  const { resultOf, streamOf } = turnReader(engine, key, interrupt)

  const decisions = approvalDecisions(engine, key, {
    withCurrentLog,
    appendAndWake,
    child: (session) => {
      const { decideAll, checkDecision } = openSession(engine, { ...key, session }, agentName)
      return {
        decide: (all, principal) => decideAll(all, { principal }),
        check: ({ approvalId, decision }, principal) => checkDecision(approvalId, decision, { principal }),
      }
    },
  })

  return {
    key,
    agent: agentName,
    run: ((input: Input, options: RunOptions = {}) => resultOf(submit(input, options), options)) as Session['run'],
    stream: ((input: Input, options: RunOptions = {}) => {
      const turnId = options.turnId ?? newId()
      return streamOf(turnId, submit(input, { ...options, turnId }), options)
    }) as Session['stream'],
    attach: (turnId) => streamOf(turnId, placeOf(turnId), {}),
    submit: (input, options = {}) => submit(input, options),
    result: (turnId) =>
      withCurrentLog(async (log) => {
        const known = findTurn(log.state, assertId(turnId, 'turnId'))
        if (known === undefined) return undefined
        const events = await Array.fromAsync(turnEvents((after) => log.read(after), log.state, known.turnId))
        return turnResult(known.turnId, events)
      }),
    wait: (turnId) => resultOf(placeOf(turnId), {}, true),
    interrupt,
    async resolve(callId, result, options = {}) {
      checkOption('resolve()', result, RESULT)
      checkOption('resolve()', options, BY)
      const { status = 'success', content } = result
      const blocks = inputBlocks(content)
      const principal = self(options.principal)
      return appendAndWake((draft): Submitted => {
        const { turn, seq } = draft.state
        const call = turn?.calls.find((it) => it.callId === callId)
        if (turn === undefined || call?.external === undefined)
          throw new OxbowError('unknown_call', `No external call ${JSON.stringify(callId)} is waiting in this session.`)
        if (call.resolved !== undefined || call.finished !== undefined)
          throw new OxbowError('call_resolved', `The result of call ${callId} has been brought already.`)
        if (!mayActFor(principal, turn.principal))
          throw new OxbowError(
            'result_forbidden',
            `Only ${turn.principal.user}, for whom this turn runs, may bring the result of its calls.`,
          )
        const { turnId } = turn
        draft.add({ type: 'external.resolved', turnId, callId, principal, status, content: blocks })
        return { turnId, accepted: 'started', after: seq }
      })
    },
    async signal(name, value = null, options = {}) {
      const principal = self(options.principal)
      return appendAndWake(signalFor(name, value, { ...options, principal }))
    },
    async decide(approvalId, decision, options = {}) {
      checkOption('decide()', options, BY)
      return decisions.decide([{ approvalId, decision }], self(options.principal))
    },
    async decideAll(all, options = {}) {
      checkOption('decideAll()', options, BY)
      return decisions.decide(all, self(options.principal))
    },
    async checkDecision(approvalId, decision, options = {}) {
      checkOption('checkDecision()', options, BY)
      return decisions.check({ approvalId, decision }, self(options.principal))
    },
    fail: (turnId, error) =>
      appendAndWake((draft) => {
        const { turn } = draft.state
        if (turn === undefined || turn.turnId !== findTurn(draft.state, turnId)?.turnId) return false
        draft.add(...whatFollows(turn, { type: 'finish', ending: { type: 'turn.failed', error } }))
        return true
      }),
    async pause(options = {}) {
      checkOption('pause()', options, STOP)
      return appendAndWake((draft) => {
        const { turn } = draft.state
        if (turn === undefined) return undefined
        if (options.turnId !== undefined && findTurn(draft.state, options.turnId)?.turnId !== turn.turnId)
          return undefined
        if (turn.pauseRequested) return turn.turnId
        const { turnId } = turn
        const { reason } = options
        draft.add({
          type: 'pause.requested',
          turnId,
          principal: self(options.principal),
          ...defined({ reason }),
        })
        return turnId
      })
    },
    async release(options = {}) {
      checkOption('release()', options, BY)
      return appendAndWake((draft) => {
        const { turn } = draft.state
        if (turn === undefined || (!turn.pauseRequested && turn.paused?.reason !== 'recovery_limit'))
          throw new OxbowError('not_parked', 'No turn of this session is paused manually or parked.')
        draft.add({ type: 'turn.released', turnId: turn.turnId, principal: self(options.principal) })
      })
    },
    async compact(options = {}) {
      checkOption('compact()', options, COMPACT)
      return withCurrentLog((log) =>
        compactBetweenTurns(log, engine.agent(log.state.agent || agentName), self(undefined), options),
      )
    },
    follow(options = {}) {
      checkOption('follow()', options, FOLLOW)
      return follow(options.after, options.signal)
    },
    async events(after = 0) {
      checkOption('events()', { after }, { after: countOrNone })
      return engine.journal.read(key, after)
    },
    state: () =>
      withCurrentLog(async (log) => {
        await log.flushed()
        return log.state
      }),
  }
}

const opened = (key: SessionKey, agent: Agent, delegation: Delegation | undefined): EventBody => ({
  type: 'session.opened',
  schemaVersion: SCHEMA_VERSION,
  key: { ...key },
  agent: { name: agent.name, version: agent.version },
  ...(delegation && { parent: parentOf(delegation) }),
})

function parentOf({ ancestors, callId }: Delegation): { session: string; turnId: string; callId: string } {
  const { session, turnId } = ancestors.at(-1)!
  return { session, turnId, callId }
}
