import { text } from 'node:stream/consumers'
import { OxbowError, releaseParked, type Session, type SessionKey, type TurnResult } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { type Config, placeOfApproval, publicApprovalId, sessionForRetry } from '@oxbow/server'
import { EXIT } from '../exit-codes.ts'
import { atTerminal, configOf, hasStore, noStore, openRuntime, type RuntimeOptions } from '../runtime.ts'
import { printable } from '../terminal/transcript.ts'
import { commandLine, isReleasable, reasonInWords } from '../terminal/words.ts'

interface TurnCommand extends RuntimeOptions {
  readonly json?: boolean
  readonly session?: string
  readonly user: string
}

export interface RunArguments extends TurnCommand {
  readonly prompt: string
  readonly turn?: string
}

/** One turn. Sets the process's exit code. */
export async function run(options: RunArguments): Promise<void> {
  const prompt = options.prompt === '-' ? await text(process.stdin) : options.prompt
  if (prompt.trim() === '')
    throw new OxbowError('empty_input', 'The input is empty. Pass text with -p, or "-p -" and text on standard input.')
  const { turn, user } = options
  // Without a session, a repeated command must find the session that the first run created.
  const named = options.session ?? (turn === undefined ? undefined : sessionForRetry(user, turn))
  await oneTurn({ ...options, ...defined({ session: named }) }, (session, signal) =>
    session.run(prompt, { surface: 'cli', signal, ...defined({ turnId: turn }) }),
  )
}

/** Resumes a parked turn and runs it to its end. */
export async function release(
  session: string | undefined,
  options: TurnCommand & { readonly all?: boolean },
): Promise<void> {
  if ((session === undefined) === (options.all !== true))
    throw new OxbowError('options_invalid', 'Give the id of a session, or --all.')
  const config = await configOf(options)
  if (!hasStore(config)) throw noStore(config)
  if (session === undefined) return releaseAll(config)
  await oneTurn({ ...options, session }, async (it, signal) => {
    const { turn, seq } = await it.state()
    if (seq === 0)
      throw new OxbowError(
        'unknown_session',
        `No session ${JSON.stringify(session)} for user ${JSON.stringify(options.user)}. Run: ${commandLine('sessions list', options)}`,
      )
    await it.release()
    return ended(it, turn!.turnId, signal)
  })
}

/** One line for each session whose turn was parked. */
async function releaseAll(config: Config): Promise<void> {
  const runtime = await openRuntime(config, atTerminal)
  const { engine } = runtime
  try {
    const released = await releaseParked(engine)
    if (released.length === 0) console.log('No turn is parked.')
    for (const key of released) {
      const session = engine.session(key)
      const { turn, finished } = await session.state()
      const result = await session.wait(turn?.turnId ?? finished.at(-1)!.turnId)
      say(`${key.session}  ${key.user}  ${result.status === 'finished' ? 'finished' : reasonInWords(result.reason)}`)
    }
  } finally {
    await engine.stop()
    await runtime.close()
  }
}

/** Decides on an approval and runs its turn until it ends or waits again. */
export async function decideApproval(
  id: string,
  verdict: 'approved' | 'denied',
  options: TurnCommand & { readonly reason?: string },
): Promise<void> {
  const config = await configOf(options)
  if (!hasStore(config)) throw noStore(config)
  const place = placeOfApproval(id)
  if (place === undefined || place.key.tenant !== 'default')
    throw new OxbowError(
      'unknown_approval',
      `Unknown approval ${JSON.stringify(id)}. Run: ${commandLine('approvals list', options)}`,
    )
  const { key, approvalId } = place
  const { user, reason } = options
  await oneTurn({ ...options, user: key.user, session: key.session }, async (session, signal) => {
    const decision = { verdict, ...defined({ reason }) }
    const { turnId } = await session.decide(approvalId, decision, { principal: { tenant: 'default', user } })
    return ended(session, turnId, signal)
  })
}

/** The result of a turn; aborting the wait interrupts the turn. */
function ended(session: Session, turnId: string, signal: AbortSignal): Promise<TurnResult> {
  const interrupt = (): void => void session.interrupt({ turnId, reason: 'aborted by the caller' })
  signal.addEventListener('abort', interrupt, { once: true })
  return session.wait(turnId)
}

async function oneTurn(
  options: TurnCommand,
  work: (session: Session, signal: AbortSignal) => Promise<TurnResult>,
): Promise<void> {
  const config = await configOf(options)
  const runtime = await openRuntime(config, atTerminal)
  const { engine } = runtime
  const controller = new AbortController()
  let interrupted = false
  process.once('SIGINT', () => {
    interrupted = true
    controller.abort()
    process.once('SIGINT', () => process.exit(EXIT.interrupted))
  })
  let session: Session | undefined
  try {
    session = engine.session({ user: options.user, ...defined({ session: options.session }) })
    const result = await work(session, controller.signal)
    print(options, session.key, result)
    process.exitCode = interrupted ? EXIT.interrupted : exitCodeOfResult(result)
  } catch (error) {
    if (options.json && error instanceof OxbowError) {
      const { code, message, retryable, details } = error
      const about = session === undefined ? {} : { session: session.key.session }
      say(JSON.stringify({ ...about, status: 'failed', error: { code, message, retryable, ...details } }))
    }
    throw error
  } finally {
    await engine.stop()
    await runtime.close()
  }
}

/** Unchanged into a pipe or a file; on a terminal, model output must not send control sequences. */
const say = (text: string): void => console.log(process.stdout.isTTY ? printable(text) : text)
const complain = (text: string): void => console.error(process.stderr.isTTY ? printable(text) : text)

function print(options: TurnCommand, key: SessionKey, result: TurnResult): void {
  const { session } = key
  const { status, reason } = result
  const approvals = result.approvals.map((it) => ({ id: publicApprovalId(key, it.approvalId), ...it }))
  if (options.json) say(JSON.stringify({ session, ...result, approvals }))
  else if (result.text !== '') say(result.text)
  for (const it of result.calls.filter((call) => call.status === 'unknown'))
    complain(`oxbow: the outcome of ${it.tool} is unknown: it was interrupted and may have run (session ${session})`)
  if (options.json || reason === 'completed') return
  const how = status === 'finished' ? 'the turn ended early' : status
  complain(`oxbow: ${how}: ${reasonInWords(reason)} (session ${session})`)
  for (const { id, tool, arguments: given, reason: why } of approvals)
    console.error(`${id}: ${printable(`${tool} ${JSON.stringify(given)}`)} – ${printable(why)}`)
  if (approvals.length > 0)
    console.error(
      `Decide with: ${commandLine(`chat --session ${session}`, options)}, ${commandLine('approvals approve ID', options)} ` +
        '(or deny), or over HTTP: POST /api/approvals/{id}',
    )
  if (status === 'paused' && isReleasable(reason))
    console.error(`Resume it with: ${commandLine(`sessions release ${session}`, options)}`)
}

function exitCodeOfResult({ status, reason, text, calls }: TurnResult): number {
  // A script must not mistake a missing answer for an answer.
  if (status === 'finished' && calls.some((it) => it.status === 'unknown')) return EXIT.unknown
  if (status === 'finished') return reason !== 'completed' && text.trim() === '' ? EXIT.failed : EXIT.ok
  return status === 'paused' ? EXIT.waiting : EXIT.stopped
}
