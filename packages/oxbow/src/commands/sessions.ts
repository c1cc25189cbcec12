import { type Backend, type Event, OxbowError, type SessionKey } from '@oxbow/core'
import { type CompactedBody, defined } from '@oxbow/core/internal'
import { atTerminal, configOf, hasStore, noStore, openRuntime, type RuntimeOptions, withBackend } from '../runtime.ts'
import { coloured, plain, printable, transcript } from '../terminal/transcript.ts'

interface SessionsCommand extends RuntimeOptions {
  readonly user: string
}

const keyOf = (user: string, session: string): SessionKey => ({ tenant: 'default', user, session })

export async function listSessions(
  options: SessionsCommand & { all?: boolean; json?: boolean; limit: string },
): Promise<void> {
  const limit = Number(options.limit)
  if (!Number.isInteger(limit) || limit < 1)
    throw new OxbowError('config_invalid', `--limit must be a whole number above 0: got ${options.limit}`)
  const config = await configOf(options)
  if (!hasStore(config)) {
    if (!options.json) console.log(`No sessions yet: no store at ${printable(config.store.path)}.`)
    return
  }
  await withBackend(options, async ({ journal }) => {
    const found = await journal.list({ ...(options.all ? {} : { user: options.user }), limit })
    if (options.json) for (const it of found) console.log(JSON.stringify(it))
    else if (found.length === 0) console.log('No sessions yet. Start one with: oxbow chat')
    else
      for (const { key, status, title, updatedAt, head } of found)
        console.log(
          `${key.session.padEnd(36)}  ${options.all ? `${key.user.padEnd(12)}  ` : ''}${status.padEnd(7)}  ` +
            `${new Date(updatedAt).toISOString().slice(0, 16)}Z  ${String(head).padStart(5)} events  ${await parentOf(journal, key)}${printable(title)}`,
        )
  })
}

/** The parent of a session that an agent opened. */
async function parentOf(journal: Backend['journal'], key: SessionKey): Promise<string> {
  const [first] = await journal.read(key, 0, 1)
  return first?.type === 'session.opened' && first.parent !== undefined
    ? `(for ${printable(first.parent.session)}) `
    : ''
}

export function showSession(session: string, options: SessionsCommand): Promise<void> {
  return withBackend(options, async (backend) => {
    const style = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain
    const screen = transcript(style)
    for await (const event of storedEvents(backend, keyOf(options.user, session))) {
      if (event.type === 'turn.started' || event.type === 'turn.steered') {
        const said = event.input.map((it) => (it.type === 'text' ? it.text : `[${it.mediaType}]`)).join(' ')
        process.stdout.write(`${style.bold(`> ${printable(said)}`)}\n`)
      } else process.stdout.write(screen.render(event))
    }
  })
}

export function exportSession(session: string, options: SessionsCommand): Promise<void> {
  return withBackend(options, async (backend) => {
    for await (const event of storedEvents(backend, keyOf(options.user, session))) console.log(JSON.stringify(event))
  })
}

/** Shortens the conversation that the model receives; a dry run shows what would be removed without a model call. */
export async function compactSession(session: string, options: SessionsCommand & { dryRun?: boolean }): Promise<void> {
  const config = await configOf(options)
  if (!hasStore(config)) throw noStore(config)
  const runtime = await openRuntime(config, atTerminal)
  const { engine } = runtime
  try {
    const it = engine.session({ user: options.user, session })
    if ((await it.state()).seq === 0) throw unknownSession(keyOf(options.user, session))
    for (const line of compactionInWords(
      await it.compact({ dryRun: options.dryRun === true }),
      options.dryRun === true,
    ))
      console.log(printable(line))
  } finally {
    await engine.stop()
    await runtime.close()
  }
}

/** Stores the signal and works on no turn: the service does, or the next start. */
export async function signalSession(
  session: string,
  name: string,
  value: string | undefined,
  options: SessionsCommand & { id?: string },
): Promise<void> {
  const config = await configOf(options)
  if (!hasStore(config)) throw noStore(config)
  const json = value === undefined ? null : jsonFrom(value)
  const runtime = await openRuntime(config, { ...atTerminal, engine: { ...atTerminal.engine, role: 'api' } })
  try {
    const it = runtime.engine.session({ user: options.user, session })
    if ((await it.state()).seq === 0) throw unknownSession(keyOf(options.user, session))
    const { turnId, accepted } = await it.signal(name, json, defined({ id: options.id }))
    console.log(accepted === 'duplicate' ? `already received by turn ${turnId}` : `sent to turn ${turnId}`)
  } finally {
    await runtime.engine.stop()
    await runtime.close()
  }
}

function jsonFrom(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const hint = `A text is written '"text"'.`
    throw new OxbowError('invalid_option', `The value is not JSON: ${(error as Error).message}. ${hint}`)
  }
}

const TIERS: Readonly<Record<CompactedBody['tier'], string>> = {
  none: 'nothing can be removed',
  references: 'long results and arguments become references',
  summary: 'a summary replaces the older messages',
  excerpt: 'the older messages are dropped without a summary',
}

function compactionInWords(it: CompactedBody, dryRun: boolean): string[] {
  const parts = Object.entries(it.parts).map(([part, tokens]) => `${part} ${tokens}`)
  return [
    `${dryRun ? 'Would be compacted' : it.tier === 'none' ? 'Not compacted' : 'Compacted'}: ${TIERS[it.tier]}`,
    `messages  ${it.messagesBefore} → ${it.messagesAfter}`,
    `tokens    ${it.tokensBefore} → ${it.tokensAfter}${dryRun ? ' (with a summary of maximum length)' : ''}`,
    `of them   ${parts.join(', ')}`,
    ...(it.failure === undefined ? [] : [`no summary: ${it.failure.message}`]),
  ]
}

const unknownSession = ({ user, session }: SessionKey): OxbowError =>
  new OxbowError(
    'unknown_session',
    `No session ${JSON.stringify(session)} for user ${JSON.stringify(user)}. Run \`oxbow sessions list\`.`,
  )

export async function* storedEvents({ journal }: Backend, key: SessionKey): AsyncGenerator<Event> {
  let after = 0
  for (;;) {
    const page = await journal.read(key, after)
    if (page.length === 0) break
    yield* page
    after = page.at(-1)!.seq
  }
  if (after === 0) throw unknownSession(key)
}
