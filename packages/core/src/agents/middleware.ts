// Five hooks around a turn. They are composed once per turn, the first middleware outermost, and never run per delta.
import { OxbowError } from '../errors.ts'
import type { EventBody, Principal } from '../events/types.ts'
import type { ModelReply, ModelRequest } from '../model.ts'
import type { SessionKey } from '../ports.ts'
import type { CallState } from '../state/state.ts'
import type { Tool } from '../tools/tool.ts'

export interface TurnContext {
  readonly session: SessionKey
  readonly turnId: string
  readonly agent: string
  readonly principal: Principal
  /** The attributes of the input, for tools and middleware only. */
  readonly attributes: Readonly<Record<string, unknown>>
  readonly signal: AbortSignal
}

export interface ModelCallContext extends TurnContext {
  readonly step: number
  /** The id of the requested model: `provider:name`. */
  readonly model: string
  /**
   * Set when the request is for a summary of the conversation and no answer: the id of the model that is asked for it.
   */
  readonly summaryBy?: string
}

export interface ActingContext extends TurnContext {
  readonly step: number
  readonly call: Pick<CallState, 'callId' | 'tool' | 'arguments'>
  /** Undefined when the model named a tool that does not exist. */
  readonly tool: Tool | undefined
}

/** The outcome of a call; `requested` means that an external call was handed to the caller. */
export type CallOutcome =
  | Pick<Extract<EventBody, { type: 'call.finished' }>, 'status' | 'content' | 'error'>
  | { readonly status: 'requested' }

/**
 * - `onAgent` wraps the work on a turn in this process, from claim to end or pause.
 * - `onReasoning` wraps one step's answer, `onModelCall` the request to the model inside it; both may change what
 *   passes.
 * - `onActing` wraps each call: run, refused, external, unknown. It may return an outcome without calling `next`: then
 *   nothing runs. Whatever it passes on is judged by the permission gate afterwards.
 * - `onSystemPrompt` receives the prompt so far and returns the next.
 *
 * A hook that throws fails the turn.
 */
export interface Middleware {
  readonly name: string
  onAgent?(context: TurnContext, next: () => Promise<void>): Promise<void>
  onReasoning?(context: TurnContext & { readonly step: number }, next: () => Promise<ModelReply>): Promise<ModelReply>
  onActing?(context: ActingContext, next: () => Promise<CallOutcome>): Promise<CallOutcome>
  onModelCall?(
    request: ModelRequest,
    context: ModelCallContext,
    next: (request: ModelRequest) => Promise<ModelReply>,
  ): Promise<ModelReply>
  onSystemPrompt?(prompt: string, context: TurnContext & { readonly step: number }): string | Promise<string>
}

export interface Hooks {
  agent(context: TurnContext, work: () => Promise<void>): Promise<void>
  reasoning(context: TurnContext & { step: number }, work: () => Promise<ModelReply>): Promise<ModelReply>
  acting(context: ActingContext, work: () => Promise<CallOutcome>): Promise<CallOutcome>
  modelCall(
    request: ModelRequest,
    context: ModelCallContext,
    work: (request: ModelRequest) => Promise<ModelReply>,
  ): Promise<ModelReply>
  systemPrompt(prompt: string, context: TurnContext & { step: number }): Promise<string>
}

type Wrap<Context, Result> = (context: Context, work: () => Promise<Result>) => Promise<Result>

export function compose(middleware: readonly Middleware[]): Hooks {
  const prompts = middleware.filter((it) => it.onSystemPrompt !== undefined)
  const models = middleware.filter((it) => it.onModelCall !== undefined)
  return {
    agent: nest(
      middleware.map((it) => it.onAgent?.bind(it)),
      true,
    ),
    reasoning: nest(middleware.map((it) => it.onReasoning?.bind(it))),
    acting: nest(
      middleware.map((it) => it.onActing?.bind(it)),
      true,
    ),
    modelCall: (request, context, work) =>
      models.reduceRight<typeof work>(
        (next, it) => (changed) => it.onModelCall!(changed, context, next),
        work,
      )(request),
    async systemPrompt(prompt, context) {
      let result = prompt
      for (const it of prompts) result = await it.onSystemPrompt!(result, context)
      return result
    },
  }
}

function nest<Context, Result>(
  hooks: readonly (Wrap<Context, Result> | undefined)[],
  once = false,
): Wrap<Context, Result> {
  const present = hooks.filter((it) => it !== undefined)
  return present.reduceRight<Wrap<Context, Result>>(
    (inner, hook) => (context, work) =>
      hook(context, once ? onlyOnce(() => inner(context, work)) : () => inner(context, work)),
    (_context, work) => work(),
  )
}

/** A call that runs twice acts twice. */
function onlyOnce<Result>(next: () => Promise<Result>): () => Promise<Result> {
  let called = false
  return () => {
    if (called)
      throw new OxbowError('middleware_invalid', 'A middleware called next() twice; onAgent and onActing may not.')
    called = true
    return next()
  }
}
