// The command line: names and options here, the work in commands/.
import http from 'node:http'
import { enableCompileCache } from 'node:module'
import { Command, Option } from 'commander'
import { EXIT, exitCodeOf } from './exit-codes.ts'

enableCompileCache()
followLauncher()
// Node reads these variables only when told to; older ones are told with NODE_USE_ENV_PROXY.
if (hasProxy(process.env)) http.setGlobalProxyFromEnv?.()

const storeOption = new Option('--store <path>', 'the SQLite file (default: .oxbow/oxbow.db)')
const modelOption = new Option(
  '--model <provider:model>',
  'the language model (default: OXBOW_MODEL, else by the keys that are set, else offline)',
)
const userOption = new Option('--user <id>', 'whose sessions').default('default')

const program = new Command('oxbow')
  .description('An agent harness: nothing lost in a crash, nothing done twice, everything visible afterwards.')
  .version('0.1.0')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? EXIT.ok : EXIT.usage))

program
  .command('serve')
  .description('Start the HTTP service.')
  .option('--host <host>', 'where to listen; loopback only (default: 127.0.0.1)')
  .option('--port <port>', 'the port (default: 8080)')
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/serve.ts')).serve(options))

program
  .command('chat')
  .description('Talk to the agent in the terminal. Ctrl-C interrupts its turn, a second one leaves.')
  .option('--session <id>', 'continue this session (default: a new one)')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/chat.ts')).chat(options))

program
  .command('run')
  .description('Run one turn and print the answer; for scripts.')
  .requiredOption('-p, --prompt <text>', 'the input; "-" reads standard input')
  .option('--json', 'print one JSON object instead of the text')
  .option('--session <id>', 'continue this session (default: a new one)')
  .option('--turn <id>', 'the id of the turn: the same id is never run twice')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .addHelpText('after', exitCodeHelp())
  .action(async (options) => (await import('./commands/run.ts')).run(options))

const sessions = program.command('sessions').description('Look at stored sessions, and let parked turns go on.')
sessions
  .command('list')
  .description('List sessions, the newest first.')
  .option('--all', 'of all users')
  .option('--limit <n>', 'how many', '20')
  .option('--json', 'one JSON object a line')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/sessions.ts')).list(options))
sessions
  .command('show <session>')
  .description('Show a conversation, with its tool calls.')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/sessions.ts')).show(session, options))
sessions
  .command('release <session>')
  .description('Let a turn go on that was set aside after it had been broken off too often; prints its answer.')
  .option('--json', 'print one JSON object instead of the text')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/run.ts')).release(session, options))
sessions
  .command('compact <session>')
  .description('Make the conversation that the model sees shorter; the journal keeps all of it.')
  .option('--dry-run', 'only tell what would go, and ask no model')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/sessions.ts')).compact(session, options))
sessions
  .command('export <session>')
  .description('Print the journal of a session: one event a line, as JSON.')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/sessions.ts')).exportSession(session, options))

const store = program.command('store').description('Check the store.')
store
  .command('check')
  .description(
    'Read everything that is stored and compare it with its checksums. Exit code 1: something is damaged or missing.',
  )
  .option('--json', 'print one JSON object instead of the text')
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/store.ts')).check(options))

const agents = program.command('agents').description('Look at the agents, and at what each is made of.')
agents
  .command('list')
  .description('List the agent that is served, and those that it can hand tasks to.')
  .option('--json', 'one JSON object a line')
  .addOption(modelOption)
  .action(async (options) => (await import('./commands/agents.ts')).list(options))
agents
  .command('inspect <name>')
  .description('Show prompt, tools and how calls of them are judged, middleware, sub-agents, model and limits.')
  .option('--json', 'one JSON object')
  .addOption(modelOption)
  .action(async (name, options) => (await import('./commands/agents.ts')).inspect(name, options))

const mcp = program.command('mcp').description('Look at the MCP servers that are configured, and try them.')
mcp
  .command('list')
  .description('List the servers and where they are.')
  .option('--json', 'one JSON object a line')
  .action(async (options) => (await import('./commands/mcp.ts')).list(options))
mcp
  .command('test [name]')
  .description(
    'Connect (default: all of them), and list the tools that the agent has and has not. Exit code 1: not there.',
  )
  .option('--json', 'one JSON object a line')
  .action(async (name, options) => (await import('./commands/mcp.ts')).test(name, options))

const approvals = program.command('approvals').description('Decide on calls that wait for a person.')
approvals
  .command('list')
  .description('List what waits in the sessions of a user.')
  .option('--json', 'one JSON object a line')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/approvals.ts')).list(options))
for (const [name, verdict, what] of [
  ['approve', 'approved', 'Let a call run exactly as it is shown'],
  ['deny', 'denied', 'Refuse a call'],
] as const)
  approvals
    .command(`${name} <id>`)
    .description(`${what}; works on its turn until that ends or waits again, and prints the answer.`)
    .option('--reason <text>', 'for the model and for the record')
    .option('--json', 'print one JSON object instead of the text')
    .addOption(userOption)
    .addOption(modelOption)
    .addOption(storeOption)
    .addHelpText('after', exitCodeHelp())
    .action(async (id, options) => (await import('./commands/run.ts')).decide(id, verdict, options))

const rules = program.command('rules').description('Rules that were accepted with approvals, and let calls run.')
rules
  .command('list')
  .description('List those of a user, and those of everybody.')
  .option('--json', 'one JSON object a line')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/rules.ts')).list(options))
rules
  .command('remove <id>')
  .description('Take a rule back: calls like it ask again.')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (id, options) => (await import('./commands/rules.ts')).remove(id, options))

const models = program.command('models').description('Look at the models that are configured, and try them.')
models
  .command('list')
  .description('List the models, which key each needs, and what is known of it.')
  .option('--json', 'one JSON object a line')
  .addOption(modelOption)
  .action(async (options) => (await import('./commands/models.ts')).list(options))
models
  .command('test [name]')
  .description('Ask a model (default: the one that is used) four small things, and say what is wrong if something is.')
  .option('--json', 'one JSON object a line')
  .addOption(modelOption)
  .action(async (name, options) => (await import('./commands/models.ts')).test(name, options))

const keys = program.command('keys').description('Make API keys for the HTTP service.')
const collect = (value: string, all: readonly string[]): string[] => [...all, value]
keys
  .command('create')
  .description('Print a new key, once, and on standard error its record for the file of keys, which holds only a hash.')
  .requiredOption('--user <id>', 'whose key it is')
  .option('--tenant <id>', 'default: the default tenant')
  .option('--department <id>', 'where the user belongs')
  .option('--role <name>', 'may be given several times', collect, [])
  .option('--permission <id>', 'such as biz:order:query or biz:*; may be given several times', collect, [])
  .option(
    '--data-scope <scope>',
    'rows that tools may show: own (the default), department, department_and_below, all, or custom:103,104; several are joined by OR',
    collect,
    [],
  )
  .option('--expires <date>', 'such as 2030-01-01')
  .action(async (options) => (await import('./commands/keys.ts')).create(options))

/** Whoever kills the launcher means this process, which is the one that works: it ends as if it had been hit itself. */
function followLauncher(): void {
  if (process.env.OXBOW_LAUNCHER === undefined) return
  delete process.env.OXBOW_LAUNCHER
  const die = (): void => void process.kill(process.pid, 'SIGKILL')
  if (!process.connected) die()
  process.once('disconnect', die)
  // It must not keep a process alive that has nothing more to do.
  process.channel?.unref()
}

function hasProxy(environment: NodeJS.ProcessEnv): boolean {
  return ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'].some((name) => Boolean(environment[name]))
}

const knowledge = program.command('knowledge').description('Search documents by their words and their numbers.')
const indexOption = new Option('--index <path>', 'the file of the index').default('.oxbow/knowledge.db')
const countOption = new Option('-k <n>', 'how many').default('5')
knowledge
  .command('add <path...>')
  .description('Index files and folders (Markdown, text, HTML, PDF); again, only what has changed is read.')
  .option('--json', 'print one JSON object')
  .addOption(indexOption)
  .action(async (paths, options) => (await import('./commands/knowledge.ts')).add(paths, options))
knowledge
  .command('remove <path...>')
  .description('Take files and folders out of the index that were added; the files stay.')
  .option('--json', 'print one JSON object')
  .addOption(indexOption)
  .action(async (paths, options) => (await import('./commands/knowledge.ts')).remove(paths, options))
knowledge
  .command('list')
  .description('List the documents, and on standard error the files that were left out.')
  .option('--json', 'one JSON object a line')
  .addOption(indexOption)
  .action(async (options) => (await import('./commands/knowledge.ts')).list(options))
knowledge
  .command('search <question>')
  .description('Print the best passages, each with the id that citations name.')
  .option('--json', 'print one JSON object')
  .addOption(countOption)
  .addOption(indexOption)
  .action(async (question, options) => (await import('./commands/knowledge.ts')).search(question, options))
knowledge
  .command('eval <file>')
  .description(
    'Measure against labels: one JSON object a line, {"query": "…", "relevant": ["document.md"], "set": "…"}.',
  )
  .option('--json', 'one JSON object a line')
  .addOption(countOption)
  .addOption(indexOption)
  .action(async (file, options) => (await import('./commands/knowledge.ts')).evaluateLabels(file, options))

function exitCodeHelp(): string {
  return `
Exit codes:
  ${EXIT.ok}    the turn finished; with a line on standard error when it ended early
  ${EXIT.failed}    it failed, or ended without an answer
  ${EXIT.usage}    the command line or the configuration is wrong
  ${EXIT.model}    the model's provider failed (key, limits, network, overload)
  ${EXIT.stopped}    it was cancelled or ran out of time
  ${EXIT.waiting}    it is waiting for an approval, an external result or a release
  ${EXIT.unknown}    it finished, but a tool call was interrupted and may have run
  ${EXIT.interrupted}  interrupted by Ctrl-C
  143  stopped by SIGTERM: the turn stays open, and goes on when its session is opened again`
}

/** After a mistake each command points to its own help. */
function pointToHelp(command: Command, path: string): void {
  command.showHelpAfterError(`(${path} --help shows what there is)`)
  for (const it of command.commands) pointToHelp(it, `${path} ${it.name()}`)
}
pointToHelp(program, 'oxbow')

// A reader that has seen enough (`oxbow sessions export … | head`) is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok)
  throw error
})

try {
  await program.parseAsync()
} catch (error) {
  const { message, code } = error as { message?: string; code?: string }
  // Only now: most commands end well, and need not load it.
  const { printable } = await import('./transcript.ts')
  const say = (text: string): void => console.error(process.stderr.isTTY ? printable(text) : text)
  say(`oxbow: ${message ?? String(error)}`)
  if (code === undefined) say(String((error as Error).stack))
  process.exitCode = exitCodeOf(code)
}
