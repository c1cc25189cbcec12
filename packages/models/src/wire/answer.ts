// How an answer settles, once: whole, failed, cancelled or timed out. Used by everything that reads a stream.
import { type FinishReason, ModelError, type ModelReply } from '@oxbow/core'
import { COUNT, checkNumbers } from '../check-numbers.ts'
import { type ErrorContext, frameError, nativeFormatError, unreadError } from '../failures/provider-errors.ts'
import { scrubbedError } from '../failures/secrets.ts'
import type { ReplyAssembler, WireFault } from './assembler.ts'
import { type Clock, startClock, type TimeoutCode, type Timeouts } from './clock.ts'

/** What one answer may hold before it is aborted as broken. */
export interface Limits {
  /** Bytes of its body, uncompressed, including the format's overhead. Default 32 MiB. */
  readonly answerBytes?: number
  /** Tool calls. Default 512. */
  readonly calls?: number
}

export const defaultLimits: Required<Limits> = { answerBytes: 32 * 1024 * 1024, calls: 512 }

/** @throws OxbowError `model_config` */
export const checkLimits = (of: string, { answerBytes, calls }: Limits): void =>
  checkNumbers(of, { 'limits.answerBytes': [answerBytes, COUNT], 'limits.calls': [calls, COUNT] })

export interface AnswerOptions {
  readonly context: ErrorContext
  readonly timeouts: Timeouts
  readonly limits: Required<Limits>
  readonly assembler: ReplyAssembler
  readonly signal: AbortSignal
  /** Called when the rest of the answer is not needed. */
  readonly abort: () => void
  /** Called once, however it ends. */
  readonly onSettled?: () => void
  /** What a timeout means, where it does not mean that nothing arrived. */
  readonly onTimeout?: (code: TimeoutCode, limitMs: number) => ModelError | undefined
}

export interface WireAnswer {
  /** Rejects with a `ModelError`, at once when the signal aborts. */
  readonly reply: Promise<ModelReply>
  readonly settled: boolean
  readonly clock: Clock
  /** Passes one frame to the assembler. */
  frame(value: object): void
  /** Ends the answer with an error in it. */
  fault(fault: WireFault): void
  succeed(): void
  fail(error: ModelError): void
  /** No more data follows: with a finish reason the answer is whole, without one it is not. */
  ended(error: () => ModelError): void
  /** The partial answer, for an error. */
  partial(): Partial
}

/** How long after the finish reason to wait for usage and the end of the stream. */
const closingMs = 5_000

export function startAnswer({
  context,
  timeouts,
  limits,
  assembler,
  signal,
  abort,
  onSettled,
  onTimeout,
}: AnswerOptions): WireAnswer {
  const { promise, resolve, reject } = Promise.withResolvers<ModelReply>()
  let settled = false

  const settle = () => {
    settled = true
    clock.stop()
    signal.removeEventListener('abort', cancel)
    onSettled?.()
  }
  const succeed = () => {
    if (settled) return
    settle()
    resolve(assembler.reply())
  }
  const fail = (error: ModelError) => {
    if (settled) return
    settle()
    reject(error)
    abort()
  }
  const partial = (finishReason: FinishReason = 'error') =>
    assembler.started ? { partial: assembler.reply(finishReason) } : {}
  const ended = (error: () => ModelError) => (assembler.complete ? succeed() : fail(error()))
  const cancel = () => fail(new ModelError('cancelled', 'The model call was cancelled.', partial('cancelled')))
  const clock = startClock(timeouts, (code, limitMs) => {
    const error = onTimeout?.(code, limitMs)
    if (error) return fail(error)
    ended(() => timeoutError(context, code, limitMs, partial()))
    abort()
  })

  const take = (fault: WireFault | undefined, wasComplete: boolean) => {
    switch (fault?.type) {
      case undefined:
        if (assembler.complete && !wasComplete) clock.closing(closingMs)
        return
      case 'error':
        // Data after the finish reason cannot invalidate the answer.
        return wasComplete ? succeed() : fail(frameError(context, fault.error, partial()))
      case 'cut':
        return wasComplete ? succeed() : fail(cutError(context, partial()))
      case 'native':
        return fail(nativeFormatError(context))
      case 'calls':
        return fail(limitError(context, limits, 'calls', partial()))
      case 'unread':
        return fail(unreadError(context, fault.kinds, partial()))
    }
  }

  if (signal.aborted) cancel()
  else signal.addEventListener('abort', cancel)

  return {
    reply: promise,
    get settled() {
      return settled
    },
    clock,
    frame(value) {
      clock.progress()
      const wasComplete = assembler.complete
      take(assembler.frame(value), wasComplete)
    },
    fault: (fault) => take(fault, assembler.complete),
    succeed,
    fail,
    ended,
    partial,
  }
}

type Partial = { readonly partial?: ModelReply }

export function cutError(context: ErrorContext, partial: Partial, cause?: unknown): ModelError {
  return new ModelError('stream_cut', `The answer of ${context.provider} broke off before its end. Try again.`, {
    retryable: true,
    ...partial,
    ...(cause === undefined ? {} : { cause: scrubbedError(context.scrub, cause) }),
  })
}

/** A retry would fail the same way. */
export function limitError(
  context: ErrorContext,
  limits: Required<Limits>,
  limit: keyof Limits,
  partial: Partial,
): ModelError {
  const what = limit === 'calls' ? 'tool calls' : 'bytes'
  const message =
    `${context.provider} sent more than ${limits[limit]} ${what} in one answer. ` +
    `If that can be right, raise limits.${limit} of the model.`
  return new ModelError('provider_error', message, partial)
}

/** Only signs of life arrived: a full queue says nothing about whether the model works. */
export const queuedError = (context: ErrorContext, limitMs: number): ModelError =>
  new ModelError(
    'total_timeout',
    `${context.provider} kept the request waiting for ${limitMs} ms and did not begin to answer. Try again later, or raise the limit.`,
    { retryable: true, details: { queued: true } },
  )

function timeoutError(context: ErrorContext, code: TimeoutCode, limitMs: number, partial: Partial): ModelError {
  const what = {
    first_byte_timeout: 'sent nothing',
    idle_timeout: 'sent nothing more',
    total_timeout: 'did not finish',
  }[code]
  return new ModelError(code, `${context.provider} ${what} within ${limitMs} ms. Try again, or raise the limit.`, {
    retryable: true,
    ...partial,
  })
}
