// Which agent runs a task, and what of the caller's data reaches it.
import type { Principal } from '@oxbow/core'
import { isReserved } from '../tasks/attributes.ts'

export interface AgentRequest {
  readonly taskId: string
  /** `agent_id` of the submission. */
  readonly agentId: string | undefined
  /** Empty at a resume. */
  readonly input: string
  readonly userId: string | undefined
  readonly parentSessionId: string | undefined
  /** A task that waited for decisions goes on. */
  readonly resume: boolean
  /** Of the submission, exactly as it came, with keys that nobody here knows. */
  readonly context: Readonly<Record<string, unknown>>
  /** `context.attributes`. */
  readonly attributes: Readonly<Record<string, unknown>>
  /** Who was proven to ask; with identity off who the body names. */
  readonly principal: Principal
}

/**
 * Names the engine's agent that runs a task. Asked when a task is submitted, and again at each resume with the original
 * context; nothing, or a name that the engine does not have, makes the task fail.
 */
export type AgentFactory = (request: AgentRequest) => string | null | undefined | Promise<string | null | undefined>

/** Adds attributes under keys of their own. Later ones win; what is written here is trusted, reserved names included. */
export type AttributeCustomizer = (
  request: AgentRequest,
) => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>

/** Where tools and middleware find `context.attributes`: one key, so that no caller can shadow one that means something. */
export const ATTRIBUTES_KEY = 'agentprotocol.context.attributes'
/** The submission's context as it came, for the factory at a resume. */
export const CONTEXT_KEY = 'agentprotocol.context'

/** Copies these attributes to keys of their own, where they were sent; names that the framework reads are skipped. */
export const promoteAttributes =
  (...names: readonly string[]): AttributeCustomizer =>
  ({ attributes }) =>
    Object.fromEntries(
      names.filter((it) => !isReserved(it) && Object.hasOwn(attributes, it)).map((it) => [it, attributes[it]]),
    )
