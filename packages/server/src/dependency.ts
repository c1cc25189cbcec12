/** Whether something works, and if not, why. */
export interface Condition {
  readonly ok: boolean
  readonly detail: string
}

/** Something outside this process that agents need, for example an MCP server. */
export interface Dependency extends Condition {
  /** For example `mcp:tickets`. */
  readonly name: string
  /** Without it the service is not ready. */
  readonly required: boolean
}
