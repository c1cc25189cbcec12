import { type McpStatus, mcp } from '@oxbow/harness'
import { EXIT } from '../exit-codes.ts'
import { configOf } from '../runtime.ts'
import { coloured, plain, printable } from '../terminal/transcript.ts'

interface McpCommand {
  readonly json?: boolean
}

/** Lists the configured servers without connecting to them. */
export async function listMcp(options: McpCommand): Promise<void> {
  const servers = Object.entries((await configOf({})).mcp)
  if (servers.length === 0) tellNone()
  for (const [server, it] of servers) {
    const where = 'url' in it ? new URL(it.url).origin + new URL(it.url).pathname : it.command
    const { trustReadOnly = false, tools = [], allow = [] } = it
    if (options.json) console.log(JSON.stringify({ server, where, trustReadOnly, tools, allow }))
    else console.log(printable(`${server.padEnd(16)} ${where}`))
  }
}

/** On standard error, because scripts read standard output line by line. */
const tellNone = (): void =>
  console.error('oxbow: No MCP servers are configured. Add one as [mcp.NAME] in oxbow.toml, or set OXBOW_MCP.')

/** Connects and lists tools; the exit code lets a script wait for a server or monitor one. */
export async function testMcp(name: string | undefined, options: McpCommand): Promise<void> {
  const config = await configOf({})
  const names = name === undefined ? Object.keys(config.mcp) : [name]
  if (names.length === 0) tellNone()
  for (const server of names) {
    const definition = config.mcp[server]
    if (definition === undefined) {
      console.error(
        `oxbow: Unknown MCP server ${printable(JSON.stringify(server))}. Configured: ${Object.keys(config.mcp).join(', ') || 'none'}.`,
      )
      process.exitCode = EXIT.usage
      return
    }
    // Skipped tools are part of the output.
    const onNotice = (): void => {}
    const servers = await mcp(
      { [server]: { ...definition, required: false } },
      { onNotice, allowStdio: config.profile !== 'prod' },
    )
    const [status] = servers.status()
    // Closed before printing, so that a reader that exits early leaves nothing behind.
    const tools = servers.tools.map((it) => it.name)
    await servers.close()
    if (status!.state !== 'connected') process.exitCode = EXIT.failed
    console.log(options.json ? JSON.stringify({ ...status, tools }) : inWords(status!))
  }
}

function inWords({ server, state, implementation, protocolVersion, problem, tools, skipped }: McpStatus): string {
  const style = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain
  if (state !== 'connected') return style.red(printable(`${server}: ${problem?.message ?? state}`))
  const about = implementation && `${implementation.name} ${implementation.version}, `
  return [
    printable(`${server}: ${about ?? ''}MCP ${protocolVersion}`),
    ...tools.map((it) => `  ✓ ${it}`),
    ...skipped.map((it) => style.dim(printable(`  – ${it.tool}: ${it.reason}`))),
  ].join('\n')
}
