// The public face of one session.
import type { Agent } from './agent.ts'
import { consequence, decide } from './decide.ts'
import { OxbowError } from './errors.ts'
import {
  type Event,
  type EventBody,
  type Failure,
  type InputBlock,
  isEvent,
  type Principal,
  type SessionItem,
  type TurnOptions,
} from './events/types.ts'
import { assertId, newId } from './ids.ts'
import { isStandardSchema, type JsonSchema, type Schema, type SchemaOutput, toJsonSchema } from './json-schema.ts'
import { MODES, type Mode } from './permissions/gate.ts'
import { mayDecide } from './permissions/may-decide.ts'
import { remember } from './permissions/remembered.ts'
import { matchesCall, parseRule } from './permissions/rules.ts'
import type { Files, SessionKey } from './ports.ts'
import { isEnd, type TurnResult, turnResult } from './result.ts'
import type { Build, Draft, SessionLog } from './session-log.ts'
import { findTurn, SCHEMA_VERSION, type SessionState } from './state.ts'

/** Text, or text with images and files. */
export type Input = string | readonly InputBlock[]

export interface RunOptions {
  /** Makes a retry safe: the same id is the same turn, whatever has become of it. Default: a new one. */
  readonly turnId?: string
  /** When a turn runs already: run after it (default), join it at its next step, or refuse with `session_busy`. */
  readonly whenBusy?: 'queue' | 'steer' | 'refuse'
  /** Who asks. Default: the session's user, without roles. */
  readonly principal?: Principal
  /** Where it came in, for the record. Default `library`. */
  readonly surface?: string
  /** The answer must be JSON of this schema. */
  readonly output?: Schema
  readonly maxSteps?: number
  readonly totalTimeoutMs?: number
  readonly idleTimeoutMs?: number
  /** Another mode than the agent's, for this turn. */
  readonly mode?: Mode
  /** Further deny rules for this turn. */
  readonly deny?: readonly string[]
  /** For tools and middleware, as `attributes`; they never enter the prompt. */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** The input is kept, and the turn fails at once: for a surface that has to accept what nobody can work on. */
  readonly failure?: Failure
  /** Aborting it interrupts the turn. */
  readonly signal?: AbortSignal
}

export interface ApprovalDecision {
  readonly verdict: 'approved' | 'denied'
  readonly reason?: string
  /** Instead of the arguments that the model gave. */
  readonly arguments?: Readonly<Record<string, unknown>>
  /** Accept a rule (one of the suggestions, or a narrower one) for calls like this one from now on. */
  readonly remember?: {
    readonly rule: string
    readonly scope: 'session' | 'user' | 'project'
    readonly expiresAt?: number
  }
}

export interface Submitted {
  /** The turn that will answer: for a steering input, the one that runs. */
  readonly turnId: string
  readonly accepted: 'started' | 'queued' | 'steered' | 'duplicate'
  /** Events after this sequence number tell what becomes of it. */
  readonly after: number
}

export interface TurnStream extends AsyncIterable<SessionItem> {
  readonly turnId: string
  /** Resolves like `run`. */
  readonly result: Promise<TurnResult>
}

export interface Session {
  readonly key: SessionKey
  readonly agent: string
  /**
   * Runs one turn to its end or pause. Resolves with `finished`, `paused` or `cancelled`.
   * @throws OxbowError with the failure's code when the turn failed; `details.turnId` names it
   */
  run<const S extends Schema>(
    input: Input,
    options: RunOptions & { output: S },
  ): Promise<TurnResult & { output: SchemaOutput<S> }>
  run(input: Input, options?: RunOptions): Promise<TurnResult>
  /** The same, with every event and fragment of the turn. Leaving the loop does not stop the turn; `signal` does. */
  stream(input: Input, options?: RunOptions): TurnStream
  /** Stores the input and returns; the turn runs on. */
  submit(input: Input, options?: Omit<RunOptions, 'signal'>): Promise<Submitted>
  /** What a turn has come to so far. Undefined for an unknown turn. */
  result(turnId: string): Promise<TurnResult | undefined>
  /** Waits for the end of a turn, or for its next pause. Resolves and rejects like `run`. @throws OxbowError `unknown_turn` */
  wait(turnId: string): Promise<TurnResult>
  /** Stops a turn (default: the one that runs). Resolves with the turn it hit, or undefined when there was none. */
  interrupt(options?: { turnId?: string; reason?: string; principal?: Principal }): Promise<string | undefined>
  /** Brings the result of an external call. A second result for the same call is refused with `call_resolved`. */
  resolve(
    callId: string,
    result: { status?: 'success' | 'error'; content: Input },
    options?: { principal?: Principal },
  ): Promise<Submitted>
  /**
   * Decides on an approval, once. Without `approver` on the approval the session's own user decides; with it, whoever holds
   * that permission. Edited arguments are validated and judged again before they run.
   * @throws OxbowError `unknown_approval`, `approval_resolved`, `approval_expired`, `approval_forbidden`, `rule_invalid`
   */
  decide(approvalId: string, decision: ApprovalDecision, options?: { principal?: Principal }): Promise<Submitted>
  /** Ends an open turn with a failure that a surface has found. Resolves with whether there was one to end. */
  fail(turnId: string, failure: Failure): Promise<boolean>
  /** Lets the running turn stop at its next step, until it is released. Resolves with the turn it hit. */
  pause(options?: { turnId?: string; reason?: string; principal?: Principal }): Promise<string | undefined>
  /** Lets a turn go on that was paused by hand, or parked after too many recoveries. */
  release(options?: { principal?: Principal }): Promise<void>
  /** Stored events after `after` (default: from now on), then live ones and fragments, until the reader leaves. */
  follow(options?: { after?: number; signal?: AbortSignal }): AsyncIterableIterator<SessionItem>
  /** Stored events after `after`, at most 500. */
  events(after?: number): Promise<Event[]>
  state(): Promise<SessionState>
}

/** Where to look for what becomes of a turn. */
type Place = Pick<Submitted, 'turnId' | 'after'> & Partial<Pick<Submitted, 'accepted'>>

/** What sessions need of the engine. */
export interface EngineInside {
  agent(name: string): Agent
  /** Gives `work` the session's log, loaded, and keeps it in memory for that long. */
  using<T>(key: SessionKey, work: (log: SessionLog) => T | Promise<T>): Promise<T>
  /** Starts working on the session's turn if it is nobody's. `claimed`: the claim has been stored with the input. */
  attend(log: SessionLog, claimed?: { epoch: number }): void
  readonly worker: string
  /** Makes this worker known as alive, once; before its first claim is stored. */
  announce(): Promise<unknown>
  readonly files: Files
  readonly stopping: boolean
}

export function openSession(engine: EngineInside, key: SessionKey, agentName: string): Session {
  const self = (principal: Principal | undefined): Principal => principal ?? { tenant: key.tenant, user: key.user }

  /** Gives `work` the log, with what other processes have appended. */
  async function current<T>(work: (log: SessionLog) => T | Promise<T>): Promise<T> {
    if (engine.stopping)
      throw new OxbowError('shutting_down', 'The service is stopping; try again in a moment.', { retryable: true })
    return engine.using(key, async (log) => {
      await log.catchUp()
      return work(log)
    })
  }

  /** Appends an input, and sees to it that somebody works on it. */
  const bring = <T>(build: Build<T>): Promise<T> =>
    current(async (log) => {
      const value = await log.append(build)
      engine.attend(log)
      return value
    })

  async function submit(input: Input, options: Omit<RunOptions, 'signal'>): Promise<Submitted> {
    const blocks = toInput(input)
    const turnId = options.turnId === undefined ? newId() : assertId(options.turnId, 'turnId')
    const principal = self(options.principal)
    const turnOptions = toTurnOptions(options)
    let epoch: number | undefined

    const accept = (draft: Draft): Submitted => {
      epoch = undefined
      const after = draft.state.seq
      const agent = engine.agent(draft.state.agent || agentName)
      if (draft.state.seq === 0) draft.add(opened(key, agent))
      const known = findTurn(draft.state, turnId)
      if (known !== undefined) return { turnId: known.turnId, accepted: 'duplicate', after: known.startedSeq - 1 }
      const busy = draft.state.turn
      if (busy !== undefined && (options.whenBusy === 'refuse' || options.failure !== undefined))
        throw new OxbowError('session_busy', `Turn ${busy.turnId} is running in this session.`, { retryable: true })
      if (busy !== undefined && options.whenBusy === 'steer') {
        draft.add({ type: 'turn.steered', turnId: busy.turnId, inputId: turnId, input: blocks, principal })
        return { turnId: busy.turnId, accepted: 'steered', after }
      }
      draft.add({
        type: 'turn.started',
        turnId,
        input: blocks,
        surface: options.surface ?? 'library',
        principal,
        agent: { name: agent.name, version: agent.version },
        options: turnOptions,
      })
      if (busy !== undefined) return { turnId, accepted: 'queued', after }
      if (options.failure !== undefined) {
        draft.add({ type: 'turn.failed', turnId, error: options.failure })
        return { turnId, accepted: 'started', after }
      }
      // Nobody can hold a turn that begins here: claim it in the same append.
      epoch = 1
      draft.add({ type: 'turn.claimed', turnId, worker: engine.worker, epoch })
      const turn = draft.state.turn!
      draft.add(...consequence(turn, decide(turn, agent.limits)))
      return { turnId, accepted: 'started', after }
    }
    await engine.announce()
    return current(async (log) => {
      const submitted = await log.append(accept)
      engine.attend(log, epoch === undefined ? undefined : { epoch })
      return submitted
    })
  }

  async function* follow(after: number | undefined, signal: AbortSignal | undefined) {
    const reader = await current((log) => log.follow(after))
    const stop = onAbort(signal, () => reader.return?.())
    try {
      yield* reader
    } finally {
      stop()
    }
  }

  /** The items of one turn, from its start to its end or to a pause that nobody has ended yet. */
  async function* itemsOf(submitting: Promise<Place>, fragments: boolean): AsyncGenerator<SessionItem, void> {
    const { turnId, after } = await submitting
    const { log, reader } = await engine.using(key, (it) => ({
      log: it,
      reader: it.follow(after, { fragments, turnId }),
    }))
    try {
      for await (const item of reader) {
        yield item
        if (!isEvent(item)) continue
        if (isEnd(item)) return
        if (item.type === 'turn.paused' && log.state.turn?.paused?.seq === item.seq) return
      }
    } finally {
      await reader.return?.()
    }
  }

  async function resultOf(submitting: Promise<Place>, options: RunOptions): Promise<TurnResult> {
    const { turnId, accepted } = await submitting
    // Who only steered a turn of somebody else may leave, but not stop it.
    const signal = accepted === 'steered' ? undefined : options.signal
    const stop = onAbort(signal, () => interrupt({ turnId, reason: 'aborted by the caller' }))
    const events: Event[] = []
    try {
      for await (const item of itemsOf(submitting, false)) if (isEvent(item)) events.push(item)
    } finally {
      stop()
    }
    const result = turnResult(turnId, events)
    if (result.status === 'failed') {
      const { code, message, reference, retryable = false } = result.error!
      throw new OxbowError(code, message, { retryable, details: { turnId, reference } })
    }
    const { output } = options
    if (result.status !== 'finished' || output === undefined || !isStandardSchema(output)) return result
    // The stored output is JSON; the caller's own schema may turn it into something richer.
    const parsed = await output['~standard'].validate(result.output)
    if (parsed.issues === undefined) return { ...result, output: parsed.value }
    const why = parsed.issues.map((it) => it.message).join('; ')
    throw new OxbowError('output_invalid', `The answer fits the JSON Schema, but not the schema's own checks: ${why}`)
  }

  async function interrupt(
    options: { turnId?: string; reason?: string; principal?: Principal } = {},
  ): Promise<string | undefined> {
    return bring((draft) => {
      const turnId = options.turnId ?? draft.state.turn?.turnId
      const known = turnId === undefined ? undefined : findTurn(draft.state, turnId)
      if (turnId === undefined || known === undefined || known.ended) return undefined
      draft.add({
        type: 'interrupt.requested',
        turnId,
        principal: self(options.principal),
        ...(options.reason !== undefined && { reason: options.reason }),
      })
      return turnId
    })
  }

  async function decideApproval(
    approvalId: string,
    decision: ApprovalDecision,
    principal: Principal,
  ): Promise<Submitted> {
    const { verdict, reason, arguments: edited, remember: rule } = decision
    const build = (draft: Draft): Submitted | undefined => {
      const { turn, seq } = draft.state
      const call = turn?.calls.find((it) => it.approval?.requested.approvalId === approvalId)
      const approval = call?.approval
      if (turn === undefined || approval === undefined)
        throw new OxbowError(
          'unknown_approval',
          `No approval ${JSON.stringify(approvalId)} is waiting in this session.`,
        )
      if (approval.resolved !== undefined || call?.finished !== undefined)
        throw new OxbowError('approval_resolved', 'This approval has been decided already.', {
          details: { verdict: approval.resolved?.verdict },
        })
      if (!mayDecide(approval.requested, principal, key))
        throw new OxbowError(
          'approval_forbidden',
          approval.requested.approver === undefined
            ? `Only ${key.user} may decide on this.`
            : `Deciding on this needs the permission ${approval.requested.approver}.`,
        )
      if (approval.requested.expiresAt <= Date.now()) {
        // Nobody has swept it up yet; that must not lengthen the time.
        draft.add({ type: 'approval.resolved', turnId: turn.turnId, approvalId, verdict: 'expired' })
        return undefined
      }
      if (approval.attempt !== undefined && (rule !== undefined || edited !== undefined))
        throw new OxbowError('decision_invalid', 'The tool asks while it works: approve or refuse, without more.')
      if (rule !== undefined) checkRemembered(rule.rule, approval.requested, engine.agent(draft.state.agent))
      draft.add({
        type: 'approval.resolved',
        turnId: turn.turnId,
        approvalId,
        verdict,
        principal,
        ...(reason !== undefined && { reason }),
        ...(edited !== undefined && { arguments: { ...edited } }),
        ...(rule !== undefined && { remember: { ...rule } }),
      })
      return { turnId: turn.turnId, accepted: 'started', after: seq }
    }
    const submitted = await bring(build)
    if (submitted === undefined)
      throw new OxbowError('approval_expired', 'The time to decide on this has run out.', {
        details: { verdict: 'expired' },
      })
    if (rule !== undefined && rule.scope !== 'session') {
      const { expiresAt } = rule
      const kept = { rule: rule.rule, author: principal.user, ...(expiresAt !== undefined && { expiresAt }) }
      await remember(engine.files, rule.scope, key.tenant, key.user, kept)
    }
    return submitted
  }

  return {
    key,
    agent: agentName,
    run: ((input: Input, options: RunOptions = {}) => resultOf(submit(input, options), options)) as Session['run'],
    stream(input, options = {}) {
      const turnId = options.turnId ?? newId()
      const submitting = submit(input, { ...options, turnId })
      const result = resultOf(submitting, options)
      // Who only reads the items is told of the failure there.
      result.catch(() => {})
      return { turnId, result, [Symbol.asyncIterator]: () => itemsOf(submitting, true) }
    },
    submit: (input, options = {}) => submit(input, options),
    result: (turnId) =>
      current(async (log) => {
        const known = findTurn(log.state, turnId)
        if (known === undefined) return undefined
        const events: Event[] = []
        for (let seq = known.startedSeq - 1; seq < known.endedSeq; seq = events.at(-1)!.seq)
          events.push(...(await log.read(seq)))
        return turnResult(turnId, events)
      }),
    wait: (turnId) =>
      resultOf(
        current((log) => {
          const known = findTurn(log.state, turnId)
          if (known !== undefined) return { turnId, after: known.startedSeq - 1 }
          throw new OxbowError('unknown_turn', `There is no turn ${JSON.stringify(turnId)} in this session.`)
        }),
        {},
      ),
    interrupt,
    async resolve(callId, { status = 'success', content }, options = {}) {
      const blocks = toInput(content)
      const principal = self(options.principal)
      return bring((draft): Submitted => {
        const { turn, seq } = draft.state
        const call = turn?.calls.find((it) => it.callId === callId)
        if (turn === undefined || call?.external === undefined)
          throw new OxbowError('unknown_call', `No external call ${JSON.stringify(callId)} is waiting in this session.`)
        if (call.resolved !== undefined || call.finished !== undefined)
          throw new OxbowError('call_resolved', `The result of call ${callId} has been brought already.`)
        const { turnId } = turn
        draft.add({ type: 'external.resolved', turnId, callId, principal, status, content: blocks })
        return { turnId, accepted: 'started', after: seq }
      })
    },
    decide: (approvalId, decision, options = {}) => decideApproval(approvalId, decision, self(options.principal)),
    fail: (turnId, error) =>
      bring((draft) => {
        const { turn } = draft.state
        if (turn?.turnId !== turnId) return false
        draft.add(...consequence(turn, { type: 'finish', ending: { type: 'turn.failed', error } }))
        return true
      }),
    pause: (options = {}) =>
      bring((draft) => {
        const { turn } = draft.state
        if (turn === undefined || (options.turnId !== undefined && options.turnId !== turn.turnId)) return undefined
        if (turn.pauseRequested) return turn.turnId
        const { turnId } = turn
        const { reason } = options
        draft.add({
          type: 'pause.requested',
          turnId,
          principal: self(options.principal),
          ...(reason !== undefined && { reason }),
        })
        return turnId
      }),
    release: (options = {}) =>
      bring((draft) => {
        const { turn } = draft.state
        if (turn === undefined || (!turn.pauseRequested && turn.paused?.reason !== 'recovery_limit'))
          throw new OxbowError('not_parked', 'No turn of this session is paused by hand or parked.')
        draft.add({ type: 'turn.released', turnId: turn.turnId, principal: self(options.principal) })
      }),
    follow: (options = {}) => follow(options.after, options.signal),
    events: (after = 0) => current((log) => log.read(after)),
    state: () => current((log) => log.state),
  }
}

/** A rule may be accepted only if it covers the call at hand, and no more tools than its own. */
function checkRemembered(text: string, requested: Event<'approval.requested'>, agent: Agent): void {
  const rule = parseRule(text)
  const tool = agent.tools.get(requested.tool)
  if (tool === undefined || rule.tool !== tool.name || !matchesCall(rule, 'allow', tool, requested.arguments))
    throw new OxbowError(
      'rule_invalid',
      `permission rule ${JSON.stringify(text)}: it does not cover this call of ${requested.tool}`,
    )
  if (tool.approval === 'always')
    throw new OxbowError('rule_invalid', `${tool.name} needs an approval each time; no rule can take its place`)
}

const opened = (key: SessionKey, agent: Agent): EventBody => ({
  type: 'session.opened',
  schemaVersion: SCHEMA_VERSION,
  key: { ...key },
  agent: { name: agent.name, version: agent.version },
})

function toInput(input: Input): InputBlock[] {
  const blocks: readonly InputBlock[] = typeof input === 'string' ? [{ type: 'text', text: input }] : input
  if (blocks.some((it) => it.type === 'data' || it.text.trim() !== '')) return [...blocks]
  throw new OxbowError('empty_input', 'The input is empty: give some text or a file.')
}

function toTurnOptions(options: RunOptions): TurnOptions {
  const { output, maxSteps, totalTimeoutMs, idleTimeoutMs, mode, deny, attributes } = options
  for (const [name, value] of Object.entries({ maxSteps, totalTimeoutMs, idleTimeoutMs }))
    if (value !== undefined && !(value > 0))
      throw new OxbowError('invalid_option', `${name} must be a number above 0; got ${String(value)}`)
  if (mode !== undefined && !MODES.includes(mode))
    throw new OxbowError('invalid_option', `mode must be one of ${MODES.join(', ')}; got ${String(mode)}`)
  return {
    ...(output !== undefined && {
      output: { name: 'output', schema: toJsonSchema(output, 'output') as JsonSchema & Record<string, unknown> },
    }),
    ...(maxSteps !== undefined && { maxSteps }),
    ...(totalTimeoutMs !== undefined && { totalTimeoutMs }),
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
    ...(mode !== undefined && { mode }),
    ...(deny !== undefined && { deny: deny.map((it) => parseRule(it).text) }),
    ...(attributes !== undefined && { attributes: { ...attributes } }),
  }
}

/** Calls `react` once, when the signal fires or has fired. Returns how to forget it. */
function onAbort(signal: AbortSignal | undefined, react: () => unknown): () => void {
  if (signal === undefined) return () => {}
  const listener = (): void => void react()
  if (signal.aborted) listener()
  else signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}
