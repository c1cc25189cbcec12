// The name of a tool for the model: the server's own, unless two would collide or models do not accept it.
import { hash } from 'node:crypto'
import { isStdio, type McpServer } from '../options.ts'

const VALID = /^[A-Za-z0-9_-]{1,64}$/
const MAX_LENGTH = 64

interface Named {
  readonly server: string
  readonly tool: string
}

/**
 * The names of a tool: the one that the model calls, the one that deny and ask rules may also use, and its origin.
 */
export interface Naming {
  readonly name: string
  readonly aliases: readonly string[]
  readonly origin: string
}

/** A server at another URL is another origin, even with the same name. */
export function originOf(name: string, server: McpServer): string {
  const where = isStdio(server) ? [server.command, ...(server.args ?? [])] : [server.url]
  return `mcp:${name}:${hash('sha256', JSON.stringify(where)).slice(0, 16)}`
}

export const aliasesOf = ({ server, tool }: Named): string[] => [tool, `${server}__${tool}`]

/**
 * The name of each, in order. It depends on the names alone, not on the order of the servers: all sides of a collision
 * are named `server__tool`.
 */
export function namesOf(tools: readonly Named[], reserved: readonly string[]): string[] {
  const count = new Map<string, number>(reserved.map((it) => [it, 1]))
  for (const { tool } of tools) count.set(tool, (count.get(tool) ?? 0) + 1)
  const long = tools.map(({ server, tool }) => `${server}__${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, '_'))
  const counted = new Map<string, number>()
  for (const it of long) counted.set(it, (counted.get(it) ?? 0) + 1)
  return tools.map(({ server, tool }, at) => {
    if (VALID.test(tool) && count.get(tool) === 1) return tool
    const name = long[at]!
    if (name.length <= MAX_LENGTH && counted.get(name) === 1) return name
    const digest = hash('sha256', `${server}\n${tool}`).slice(0, 8)
    return `${name.slice(0, MAX_LENGTH - digest.length - 1)}_${digest}`
  })
}
