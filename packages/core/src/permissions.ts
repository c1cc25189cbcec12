// The gate that every call passes. Provisional: it knows read-only tools and the agent's own list; modes, rules,
// approvals and identity belong here and nowhere else.
import type { Principal } from './events/types.ts'
import { onlyReads, type Tool } from './tool.ts'

export interface Verdict {
  readonly decision: 'allow' | 'deny'
  /** The rule that decided, as it stands in the configuration. */
  readonly rule: string
  readonly reason: string
}

export function authorise(request: {
  readonly tool: Tool
  readonly arguments: Readonly<Record<string, unknown>>
  /** Names of tools that the agent may use although they do more than read. */
  readonly allow: readonly string[]
  readonly principal: Principal
}): Verdict {
  const { tool, allow } = request
  if (allow.includes(tool.name))
    return { decision: 'allow', rule: `allow:${tool.name}`, reason: 'The agent lists this tool as allowed.' }
  if (onlyReads(tool)) return { decision: 'allow', rule: 'default:read', reason: 'The tool only reads.' }
  const beyond = tool.effects.filter((it) => it !== 'read').join(', ')
  return {
    decision: 'deny',
    rule: 'default:deny',
    reason: `The tool can ${beyond}, and the agent does not list it under "allow".`,
  }
}
