// The command line: names and options here, the work in commands/.
import http from 'node:http'
import { enableCompileCache } from 'node:module'
import { Command, Option } from 'commander'
import { EXIT, exitCodeOf } from './exit-codes.ts'

enableCompileCache()
followLauncher()
// Node reads the proxy variables only on request; older versions need NODE_USE_ENV_PROXY.
if (hasProxy(process.env)) http.setGlobalProxyFromEnv?.()

const storeOption = new Option(
  '--store <path>',
  'the SQLite file or the postgres:// address (default: .oxbow/oxbow.db)',
)
const modelOption = new Option(
  '--model <provider:model>',
  'the model (default: OXBOW_MODEL, then the first provider with an API key, then the offline stub)',
)
const userOption = new Option('--user <id>', 'the user who owns the sessions').default('default')

const program = new Command('oxbow')
  .description(
    'An agent harness. Crashes lose nothing, no action runs twice or without permission, and every step is auditable.',
  )
  .version('0.1.0')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? EXIT.ok : EXIT.usage))

program
  .command('serve')
  .description('Start the HTTP service.')
  .option('--host <host>', 'address to listen on; without identity only loopback (default: 127.0.0.1)')
  .option('--port <port>', 'port to listen on (default: 8080)')
  .option('--role <role>', 'all, api (serve requests only) or worker (work on turns only) (default: all)')
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/serve.ts')).serve(options))

program
  .command('chat')
  .description('Chat with the agent in the terminal. Ctrl-C: stop the turn, twice: quit.')
  .option('--session <id>', 'continue this session (default: a new one)')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/chat.ts')).chat(options))

program
  .command('run')
  .description('Run one turn and print the answer. For scripts.')
  .requiredOption('-p, --prompt <text>', 'the input; "-" reads standard input')
  .option('--json', 'print one JSON object instead of the text')
  .option('--session <id>', 'continue this session (default: a new one)')
  .option('--turn <id>', 'idempotency key: a turn with the same id runs only once')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .addHelpText('after', exitCodeHelp())
  .action(async (options) => (await import('./commands/run.ts')).run(options))

const sessions = program
  .command('sessions')
  .description('List, show, export, compact and signal sessions; release parked turns.')
sessions
  .command('list')
  .description('List sessions, newest first.')
  .option('--all', 'include all users')
  .option('--limit <n>', 'maximum number of sessions', '20')
  .option('--json', 'print JSON Lines')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/sessions.ts')).listSessions(options))
sessions
  .command('show <session>')
  .description('Show a conversation with its tool calls.')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/sessions.ts')).showSession(session, options))
sessions
  .command('release [session]')
  .description('Resume a turn that was parked after repeated interruptions, and print its answer.')
  .option('--all', 'resume every parked turn, of all users, and print how each ended')
  .option('--json', 'print one JSON object instead of the text')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/run.ts')).release(session, options))
sessions
  .command('compact <session>')
  .description('Shorten the conversation that the model receives. The journal keeps everything.')
  .option('--dry-run', 'show what would be removed; calls no model')
  .addOption(userOption)
  .addOption(modelOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/sessions.ts')).compactSession(session, options))
sessions
  .command('export <session>')
  .description('Print the journal of a session as JSON Lines, one event per line.')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (session, options) => (await import('./commands/sessions.ts')).exportSession(session, options))
sessions
  .command('signal <session> <name> [value]')
  .description('Send a signal to the open turn: a tool that waits for its name continues. The value is JSON.')
  .option('--id <id>', 'a signal with the same id is delivered once')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (session, name, value, options) =>
    (await import('./commands/sessions.ts')).signalSession(session, name, value, options),
  )

const store = program.command('store').description('Check, back up, restore and migrate the store.')
store
  .command('check')
  .description(
    'Read everything that is stored and compare it with its checksums. Exit code 1: something is damaged or missing.',
  )
  .option('--json', 'print one JSON object instead of the text')
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/store.ts')).check(options))
store
  .command('backup <file>')
  .description('Write everything that is stored to a file, also while a service runs. With .gz it is compressed.')
  .option('--tenant <id>', 'only this tenant')
  .option('--user <id>', 'only this user')
  .addOption(storeOption)
  .action(async (file, options) => (await import('./commands/store.ts')).backup(file, options))
store
  .command('restore <file>')
  .description('Load a backup into an empty store. Repeat the command after an interruption.')
  .addOption(storeOption)
  .action(async (file, options) => (await import('./commands/store.ts')).restore(file, options))
store
  .command('erase')
  .description('Erase everything that is stored about a session, a user or a tenant. Without --yes it only counts.')
  .option('--tenant <id>', 'the tenant', 'default')
  .option('--user <id>', 'the user')
  .option('--session <id>', 'only this session of the user')
  .option('--all-users', 'the whole tenant')
  .option('--yes', 'erase it')
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/store.ts')).erase(options))
store
  .command('migrate')
  .description('Copy a store into another one. Repeat the command after an interruption; it continues.')
  .requiredOption('--from <store>', 'sqlite:PATH, postgres://… or redis://…')
  .requiredOption('--to <store>', 'sqlite:PATH, postgres://… or redis://…')
  .action(async (options) => (await import('./commands/store.ts')).migrateStore(options))

const agents = program.command('agents').description('List agents and show their definitions.')
agents
  .command('list')
  .description('List the served agent and its sub-agents.')
  .option('--json', 'print JSON Lines')
  .addOption(modelOption)
  .action(async (options) => (await import('./commands/agents.ts')).listAgents(options))
agents
  .command('inspect <name>')
  .description('Show prompt, tools and their permissions, middleware, sub-agents, model and limits.')
  .option('--json', 'print one JSON object')
  .addOption(modelOption)
  .action(async (name, options) => (await import('./commands/agents.ts')).inspectAgent(name, options))

const mcp = program.command('mcp').description('List and test the configured MCP servers.')
mcp
  .command('list')
  .description('List the servers and their addresses.')
  .option('--json', 'print JSON Lines')
  .action(async (options) => (await import('./commands/mcp.ts')).listMcp(options))
mcp
  .command('test [name]')
  .description(
    'Connect to a server (default: all) and list the tools that the agent gets and those it does not. ' +
      'Exit code 1: unreachable.',
  )
  .option('--json', 'print JSON Lines')
  .action(async (name, options) => (await import('./commands/mcp.ts')).testMcp(name, options))

program
  .command('tools')
  .description('Test tools.')
  .command('test [names...]')
  .description(
    'Run the self-tests that tools carry (default: of all tools). Exit code 1: one failed, or there is none.',
  )
  .option('--module <path>', 'test the tools that this module exports (default: those of the served agents)')
  .option('--json', 'print JSON Lines')
  .action(async (names, options) => (await import('./commands/tools.ts')).testToolsCommand(names, options))

const approvals = program
  .command('approvals')
  .description('List, approve and deny tool calls that are waiting for approval.')
approvals
  .command('list')
  .description('List pending approvals of a user.')
  .option('--json', 'print JSON Lines')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/approvals.ts')).listApprovals(options))
for (const [name, verdict, what] of [
  ['approve', 'approved', 'Approve a tool call exactly as shown'],
  ['deny', 'denied', 'Deny a tool call'],
] as const)
  approvals
    .command(`${name} <id>`)
    .description(`${what}; resumes its turn until it ends or waits again, and prints the answer.`)
    .option('--reason <text>', 'shown to the model and stored in the audit log')
    .option('--json', 'print one JSON object instead of the text')
    .addOption(userOption)
    .addOption(modelOption)
    .addOption(storeOption)
    .addHelpText('after', exitCodeHelp())
    .action(async (id, options) => (await import('./commands/run.ts')).decideApproval(id, verdict, options))

const rules = program.command('rules').description('Rules that were remembered with approvals and allow later calls.')
rules
  .command('list')
  .description('List the rules of a user and the shared rules.')
  .option('--json', 'print JSON Lines')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (options) => (await import('./commands/rules.ts')).listRules(options))
rules
  .command('remove <id>')
  .description('Remove a rule; matching calls need approval again.')
  .addOption(userOption)
  .addOption(storeOption)
  .action(async (id, options) => (await import('./commands/rules.ts')).removeRule(id, options))

const models = program.command('models').description('List and test the configured models.')
models
  .command('list')
  .description('List the models, the API key that each needs, and known limits and prices.')
  .option('--json', 'print JSON Lines')
  .addOption(modelOption)
  .action(async (options) => (await import('./commands/models.ts')).listModels(options))
models
  .command('test [name]')
  .description('Send four small requests to a model (default: the default model) and report what is wrong.')
  .option('--json', 'print JSON Lines')
  .addOption(modelOption)
  .action(async (name, options) => (await import('./commands/models.ts')).testModel(name, options))

/** What `oxbow keys create` writes to standard error is meant for the key file, so an error is a comment there. */
const asComment = (text: string): string => text.replaceAll(/^(?=.)/gm, '# ')

const keys = program.command('keys').description('Create API keys for the HTTP service.')
const collect = (value: string, all: readonly string[]): string[] => [...all, value]
keys
  .command('create')
  .description('Print a new key once. Its record for the key file, which contains only a hash, goes to standard error.')
  .configureOutput({ writeErr: (text) => void process.stderr.write(asComment(text)) })
  .requiredOption('--user <id>', 'the user who will own the key')
  .option('--tenant <id>', 'tenant of the user (default: default)')
  .option('--department <id>', 'department of the user')
  .option('--role <name>', 'repeatable', collect, [])
  .option('--permission <id>', 'for example biz:order:query or biz:*; repeatable', collect, [])
  .option(
    '--data-scope <scope>',
    'rows that tools may return: own (default), department, department_and_below, all, or custom:103,104; ' +
      'repeatable, joined by OR',
    collect,
    [],
  )
  .option('--expires <date>', 'expiry date, for example 2030-01-01')
  .action(async (options) => (await import('./commands/keys.ts')).create(options))

/** When the launcher is killed, this process, which does the work, must die the same way. */
function followLauncher(): void {
  if (process.env.OXBOW_LAUNCHER === undefined) return
  delete process.env.OXBOW_LAUNCHER
  const die = (): void => void process.kill(process.pid, 'SIGKILL')
  if (!process.connected) die()
  process.once('disconnect', die)
  // The channel must not keep an idle process alive.
  process.channel?.unref()
}

function hasProxy(environment: NodeJS.ProcessEnv): boolean {
  return ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'].some((name) => Boolean(environment[name]))
}

const knowledge = program.command('knowledge').description('Index and search documents.')
const indexOption = new Option('--index <path>', 'index file').default('.oxbow/knowledge.db')
const countOption = new Option('-k <n>', 'number of results').default('5')
knowledge
  .command('add <path...>')
  .description('Index files and folders (Markdown, text, HTML, PDF). A second run reads only what has changed.')
  .option('--json', 'print one JSON object')
  .addOption(indexOption)
  .action(async (paths, options) => (await import('./commands/knowledge.ts')).add(paths, options))
knowledge
  .command('remove <path...>')
  .description('Remove files and folders from the index. The files themselves stay.')
  .option('--json', 'print one JSON object')
  .addOption(indexOption)
  .action(async (paths, options) => (await import('./commands/knowledge.ts')).removeKnowledge(paths, options))
knowledge
  .command('list')
  .description('List the documents; files that could not be indexed are listed on standard error.')
  .option('--json', 'print JSON Lines')
  .addOption(indexOption)
  .action(async (options) => (await import('./commands/knowledge.ts')).listKnowledge(options))
knowledge
  .command('search <question>')
  .description('Print the best passages with their citation ids.')
  .option('--json', 'print one JSON object')
  .addOption(countOption)
  .addOption(indexOption)
  .action(async (question, options) => (await import('./commands/knowledge.ts')).searchKnowledge(question, options))
knowledge
  .command('eval <file>')
  .description(
    'Measure search quality against labels, JSON Lines of the form {"query": "…", "relevant": ["document.md"], "set": "…"}.',
  )
  .option('--json', 'print JSON Lines')
  .addOption(countOption)
  .addOption(indexOption)
  .action(async (file, options) => (await import('./commands/knowledge.ts')).evaluateLabels(file, options))

function exitCodeHelp(): string {
  return `
Exit codes:
  ${EXIT.ok}    the turn finished; if it ended early, standard error says why
  ${EXIT.failed}    the turn failed or ended without an answer
  ${EXIT.usage}    the command line or the configuration is wrong
  ${EXIT.model}    the model's provider failed (key, limits, network, overload)
  ${EXIT.stopped}    the turn was cancelled or timed out
  ${EXIT.waiting}    the turn is waiting for an approval, an external result or a release
  ${EXIT.unknown}    the turn finished, but a tool call was interrupted and may have run
  ${EXIT.interrupted}  interrupted by Ctrl-C
  143  stopped by SIGTERM; the turn stays open and resumes when its session is opened again`
}

/** After a usage error each command points to its own help. */
function pointToHelp(command: Command, path: string): void {
  command.showHelpAfterError(`(Run ${path} --help for usage.)`)
  for (const it of command.commands) pointToHelp(it, `${path} ${it.name()}`)
}
pointToHelp(program, 'oxbow')

// A reader that closes the pipe early (`oxbow sessions export … | head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.ok)
  throw error
})

try {
  await program.parseAsync()
} catch (error) {
  const { message, code } = error as { message?: string; code?: string }
  // Loaded here, because most commands end without an error.
  const { printable } = await import('./terminal/transcript.ts')
  const isKeyFile = process.argv[2] === 'keys' && process.argv[3] === 'create'
  const say = (text: string): void =>
    console.error(process.stderr.isTTY ? printable(text) : isKeyFile ? asComment(text) : text)
  say(`oxbow: ${message ?? String(error)}`)
  if (code === undefined) say(String((error as Error).stack))
  process.exitCode = exitCodeOf(code)
}
