// The steps, sleeps and signals of a durable tool. Each end is in the journal, so the tool can run again from its
// beginning: what it had done is answered from there, by position and name.
import { setTimeout as delay } from 'node:timers/promises'
import { defined } from '../checks/defined.ts'
import { OxbowError, ToolError } from '../errors.ts'
import type { EventBody, Failure } from '../events/types.ts'
import type { WorkEnd, WorkState } from '../state/work-state.ts'
import { jsonCopy } from '../tools/result-blocks.ts'
import type { StepOptions, Tool, ToolContext } from '../tools/tool.ts'
import type { TurnRun } from '../turn/turn-run.ts'

const MAX_WORK = 1_000
/** The result of a step is read again each time that the tool runs. In characters of its JSON. */
const MAX_VALUE = 1_000_000
const MAX_NAME = 200
/** The longest time that a date can express safely, and that somebody could mean. */
const MAX_SLEEP_MS = 10 * 365 * 24 * 3_600_000
/** The first wait before a step is tried again; each further one is twice as long. */
const RETRY_MS = 200

export type WorkContext = Pick<ToolContext, 'step' | 'sleep' | 'waitFor'>

/** For tools that are not durable, and outside of `run`. */
export function noWork({ name, durable }: Tool): WorkContext {
  const refuse = (method: string) => () =>
    Promise.reject(
      new OxbowError(
        'tool_invalid',
        durable
          ? `tool ${name}: ${method}() works only inside run`
          : `tool ${name}: ${method}() needs durable: true in the definition of the tool`,
      ),
    )
  return { step: refuse('step'), sleep: refuse('sleep'), waitFor: refuse('waitFor') }
}

/** @returns the functions for one run of the tool; `suspended` resolves when it waits and is to be abandoned */
export function durableWork(
  run: TurnRun,
  tool: Tool,
  { callId, operationId }: Pick<ToolContext, 'callId' | 'operationId'>,
  signal: AbortSignal,
): { readonly context: WorkContext; readonly suspended: Promise<void> } {
  if (!tool.durable) return { context: noWork(tool), suspended: new Promise(() => {}) }
  const { turnId } = run
  const { promise: suspended, resolve: suspend } = Promise.withResolvers<void>()
  let last = 0
  let active = 0
  let waiting = false

  const workAt = (position: number): WorkState | undefined =>
    run.turn().calls.find((it) => it.callId === callId)?.work?.[position - 1]

  /** Takes the next position. Rejects what cannot be the same when the tool runs again. */
  function next(kind: WorkState['kind'], name: unknown): { position: number; known: WorkState | undefined } {
    signal.throwIfAborted()
    if (typeof name !== 'string' || name === '' || name.length > MAX_NAME)
      throw new OxbowError('tool_invalid', `tool ${tool.name}: a ${kind} needs a name of 1 to ${MAX_NAME} characters`)
    if (waiting || (kind !== 'step' && active > 0))
      throw new OxbowError(
        'tool_invalid',
        `tool ${tool.name}: "${name}" runs beside another ${waiting ? 'wait' : 'step'}. sleep() and waitFor() must be awaited alone.`,
      )
    last += 1
    if (last > MAX_WORK)
      throw new OxbowError('tool_invalid', `tool ${tool.name}: more than ${MAX_WORK} steps in one call`)
    const known = workAt(last)
    if (known !== undefined && (known.kind !== kind || known.name !== name))
      throw new OxbowError(
        'steps_changed',
        `${tool.name} has changed since this call began: at position ${last} it had the ${known.kind} "${known.name}", now the ${kind} "${name}". Steps that had finished took effect.`,
      )
    return { position: last, known }
  }

  const write = (body: EventBody): Promise<void> =>
    run.write((turn) => (turn.calls.some((it) => it.callId === callId && it.finished === undefined) ? [body] : []))

  const finish = async (position: number, end: WorkEnd): Promise<void> =>
    write({ type: 'work.finished', turnId, callId, position, end })

  /** The words that the tool sees, now and when it runs again. */
  function failureOf(name: string, error: unknown): Failure {
    if (error instanceof OxbowError) return { code: error.code, message: error.message }
    return { code: 'tool_error', message: `The step "${name}" failed. Reference: ${run.report(error)}` }
  }

  async function step<T>(
    name: string,
    work: Parameters<WorkContext['step']>[1],
    options: StepOptions<T> = {},
  ): Promise<T> {
    const { position, known } = next('step', name)
    if (typeof work !== 'function')
      throw new OxbowError('tool_invalid', `tool ${tool.name}: the step "${name}" needs a function`)
    if (known?.ended !== undefined) return answerOf(known.ended) as T
    const id = `${operationId}.${position}`
    active += 1
    try {
      if (known !== undefined && options.idempotent !== true) {
        const found = (await options.reconcile?.(id)) ?? { status: 'unknown' as const }
        if (found.status === 'done') return await succeed(position, name, found.result)
        if (found.status !== 'not_done')
          throw new OxbowError(
            'outcome_unknown',
            `The step "${name}" of ${tool.name} had started when its process stopped. It may have taken effect. Do not repeat the call before checking.`,
          )
      }
      const retries = options.idempotent === true ? (options.retries ?? 0) : 0
      const first = (known?.attempt ?? 0) + 1
      for (let attempt = first; ; attempt++) {
        await write({ type: 'work.started', turnId, callId, position, kind: 'step', name, attempt, operationId: id })
        run.faultPoint?.('step.before')
        let value: T
        try {
          value = (await work({ operationId: id, attempt, signal })) as T
          run.faultPoint?.('step.after')
        } catch (error) {
          // Whether it took effect is not known: the next run asks.
          if (signal.aborted || run.stopped !== undefined) throw error
          if (attempt - first < retries) {
            await delay(RETRY_MS * 2 ** (attempt - first), undefined, { signal })
            continue
          }
          return await fail(position, failureOf(name, error))
        }
        return await succeed(position, name, value)
      }
    } finally {
      active -= 1
    }
  }

  async function fail(position: number, error: Failure): Promise<never> {
    await finish(position, { status: 'error', error })
    throw new ToolError(error.message)
  }

  /** A result that cannot be kept is a failure: the step has taken effect all the same. */
  async function succeed<T>(position: number, name: string, value: T): Promise<T> {
    let copy: unknown
    try {
      copy = value === undefined ? undefined : jsonCopy(value, `step "${name}"`)
    } catch (error) {
      return fail(position, failureOf(name, error))
    }
    if (JSON.stringify(copy ?? null).length > MAX_VALUE) {
      const message = `The result of step "${name}" is longer than ${MAX_VALUE} characters. Return a reference.`
      return fail(position, { code: 'tool_error', message })
    }
    await finish(position, { status: 'success', ...defined({ value: copy }) })
    return copy as T
  }

  /** Never resolves: the tool runs again when the wait is over. */
  function abandon(): Promise<never> {
    waiting = true
    suspend()
    return new Promise(() => {})
  }

  return {
    suspended,
    context: {
      step: step as WorkContext['step'],
      async sleep(ms) {
        if (!isTime(ms))
          throw new OxbowError(
            'tool_invalid',
            `tool ${tool.name}: sleep() takes milliseconds, at most 10 years; got ${ms}`,
          )
        const { position, known } = next('sleep', 'sleep')
        if (known?.ended !== undefined) return
        const wakeAt = Math.ceil(Date.now() + ms)
        if (known === undefined)
          await write({
            type: 'work.started',
            turnId,
            callId,
            position,
            kind: 'sleep',
            name: 'sleep',
            attempt: 1,
            wakeAt,
          })
        return abandon()
      },
      async waitFor(name, { timeoutMs } = {}) {
        if (timeoutMs !== undefined && !isTime(timeoutMs))
          throw new OxbowError(
            'tool_invalid',
            `tool ${tool.name}: timeoutMs must be milliseconds, at most 10 years; got ${timeoutMs}`,
          )
        const { position, known } = next('signal', name)
        if (known === undefined) {
          const wakeAt = timeoutMs === undefined ? undefined : Math.ceil(Date.now() + timeoutMs)
          await write({
            type: 'work.started',
            turnId,
            callId,
            position,
            kind: 'signal',
            name,
            attempt: 1,
            ...defined({ wakeAt }),
          })
        }
        const { ended } = workAt(position)!
        return ended === undefined ? abandon() : (answerOf(ended) as never)
      },
    },
  }
}

/** @throws ToolError the failure of the step */
function answerOf(ended: WorkEnd): unknown {
  if (ended.status === 'error') throw new ToolError(ended.error.message)
  return ended.status === 'success' ? ended.value : undefined
}

const isTime = (ms: unknown): boolean => typeof ms === 'number' && ms >= 0 && ms <= MAX_SLEEP_MS
