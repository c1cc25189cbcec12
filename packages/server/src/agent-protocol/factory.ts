// Chooses the agent of a task, and the caller's attributes that reach it.
import type { Principal } from '@oxbow/core'
import { isReserved } from '../tasks/attributes.ts'

export interface AgentRequest {
  readonly taskId: string
  /** `agent_id` of the submission. */
  readonly agentId: string | undefined
  /** Empty on resume. */
  readonly input: string
  readonly userId: string | undefined
  readonly parentSessionId: string | undefined
  /** Whether a task that waited for approvals resumes. */
  readonly resume: boolean
  /** The submission's context unchanged, including unknown keys. */
  readonly context: Readonly<Record<string, unknown>>
  /** `context.attributes`. */
  readonly attributes: Readonly<Record<string, unknown>>
  /** The authenticated principal; without identity the user that the body names. */
  readonly principal: Principal
}

/**
 * Names the agent that runs a task. Called when a task is submitted, and again on each resume with the original
 * context. The task fails if it returns nothing or the name of an unknown agent.
 */
export type AgentFactory = (request: AgentRequest) => string | null | undefined | Promise<string | null | undefined>

/**
 * Adds attributes under names of their own. Later customizers override earlier ones. Their attributes are trusted,
 * reserved names included.
 */
export type AttributeCustomizer = (
  request: AgentRequest,
) => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>

/**
 * The key of `context.attributes` for tools and middleware: a single key, so that no caller can override a trusted
 * attribute.
 */
export const ATTRIBUTES_KEY = 'agentprotocol.context.attributes'
/** The submission's original context, for the factory on resume. */
export const CONTEXT_KEY = 'agentprotocol.context'

/** Also sets these attributes under their own names. Reserved names are skipped. */
export const promoteAttributes =
  (...names: readonly string[]): AttributeCustomizer =>
  ({ attributes }) =>
    Object.fromEntries(
      names.filter((it) => !isReserved(it) && Object.hasOwn(attributes, it)).map((it) => [it, attributes[it]]),
    )

/** Options that only code can set. */
export interface AgentProtocolHost {
  /** Default: the agent that `agent_id` names, otherwise the engine's first. */
  readonly factory?: AgentFactory
  readonly customizers?: readonly AttributeCustomizer[]
}
