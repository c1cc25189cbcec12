/** Whether something works, and what is wrong if not. */
export interface Condition {
  readonly ok: boolean
  readonly detail: string
}

/** Something outside this process that agents need, such as an MCP server. */
export interface Dependency extends Condition {
  /** For example `mcp:tickets`. */
  readonly name: string
  /** The service is not ready without it. */
  readonly required: boolean
}
