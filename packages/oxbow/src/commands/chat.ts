import { createInterface, type Interface } from 'node:readline/promises'
import { addUsage, noUsage, type Session, type SessionItem, type SessionState, type Submitted } from '@oxbow/core'
import { defined } from '@oxbow/core/internal'
import { publicApprovalId } from '@oxbow/server'
import { EXIT } from '../exit-codes.ts'
import { atTerminal, configOf, modelInWords, openRuntime, type RuntimeOptions } from '../runtime.ts'
import { approving, waiting } from '../terminal/approving.ts'
import { approvalCard, coloured, plain, printable, transcript } from '../terminal/transcript.ts'
import { commandLine, isReleasable } from '../terminal/words.ts'
import { usageDetail, usageLine } from '../usage.ts'

export interface ChatCommand extends RuntimeOptions {
  readonly session?: string
  readonly user: string
}

/** Reads lines until the end of input. A line typed while the agent works joins its turn at the next step. */
export async function chat(options: ChatCommand): Promise<void> {
  const config = await configOf(options)
  const runtime = await openRuntime(config, atTerminal)
  const { engine, models } = runtime
  const { user, session: name } = options
  const session = engine.session({ user, ...defined({ session: name }) })
  const interactive = process.stdin.isTTY === true && process.stdout.isTTY === true
  const style = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain
  const screen = transcript(style)
  /** The last turn shown. */
  let turnUsage = noUsage
  const write = (item: SessionItem): void => {
    if (item.type === 'turn.started') turnUsage = noUsage
    if (item.type === 'model.finished') turnUsage = addUsage(turnUsage, item.usage)
    process.stdout.write(screen.render(item))
  }
  const used = async () => ({
    turn: turnUsage,
    state: await session.state(),
    window: models.get('default').contextWindow,
  })

  let busy: string | undefined
  let leaving = false
  let lines: Interface | undefined

  /** Shows a turn to its end. */
  const watch = async (submitted: Pick<Submitted, 'turnId' | 'after'>): Promise<void> => {
    busy = submitted.turnId
    try {
      await show(session, submitted, write)
    } catch (error) {
      process.stdout.write(`${style.red(`oxbow: ${(error as Error).message}`)}\n`)
      process.exitCode = EXIT.failed
    }
    busy = undefined
    if (interactive) console.log(style.dim(usageLine(await used())))
    if (interactive && !leaving && !(await approvals.begin())) ask('> ')
  }

  const ask = (question: string, draft?: string): void => {
    lines?.setPrompt(style.bold(question))
    lines?.prompt()
    if (draft !== undefined) lines?.write(draft)
  }
  const approvals = approving(session, { style, print: (line) => console.log(line), prompt: ask })

  /** Handles a line that is for the terminal, not for the model. Returns a turn to show. */
  const command = async (line: string): Promise<Pick<Submitted, 'turnId' | 'after'> | 'exit' | undefined> => {
    if (line === '/exit' || line === '/quit') return 'exit'
    if (line === '/usage') {
      console.log(usageDetail(await used()))
      return undefined
    }
    if (line === '/release') {
      try {
        const { turn, seq } = await session.state()
        await session.release()
        return turn && { turnId: turn.turnId, after: seq }
      } catch (error) {
        console.log(style.red(`oxbow: ${(error as Error).message}`))
        return undefined
      }
    }
    if (line !== '/help') console.log(`Unknown command: ${printable(line)}.`)
    console.log(style.dim(COMMANDS))
    return undefined
  }

  try {
    await engine.start()
    if (interactive)
      console.log(
        style.dim(
          `session ${session.key.session} · model ${modelInWords(models)} · Ctrl-C: stop the turn, twice: quit · /help`,
        ),
      )
    const state = await session.state()
    const { turn } = state
    if (interactive && name !== undefined) console.log(style.dim(whatIsThere(state)))
    // Not earlier: lines are lost while nothing iterates.
    lines = createInterface({
      input: process.stdin,
      output: process.stdout,
      terminal: interactive,
    })
    const input = lines
    input.on('SIGINT', () => {
      if (busy === undefined) {
        leaving = true
        input.close()
        return
      }
      const turnId = busy
      busy = undefined
      void session.interrupt({ turnId, reason: 'stopped by the user' })
    })
    let watching = turn === undefined ? Promise.resolve() : watch({ turnId: turn.turnId, after: turn.startedSeq - 1 })
    if (turn === undefined && interactive) ask('> ')

    for await (const line of input) {
      if (approvals.asking) {
        const goesOn = await approvals.take(line)
        if (goesOn !== undefined) watching = watch(goesOn)
        continue
      }
      if (line.trim() === '') {
        if (interactive && busy === undefined) ask('> ')
        continue
      }
      if (interactive && line.trim().startsWith('/')) {
        const submitted = await command(line.trim())
        if (submitted === 'exit') break
        if (submitted !== undefined) watching = watch(submitted)
        else if (busy === undefined) ask('> ')
        continue
      }
      // Piped lines are separate questions; typed ones may steer the running turn.
      if (!interactive) await watching
      if (!interactive && (await session.state()).turn !== undefined) break
      const submitted = await session.submit(line, { surface: 'cli', whenBusy: interactive ? 'steer' : 'queue' })
      if (submitted.accepted !== 'steered') watching = watch(submitted)
      else {
        const { turn: open } = await session.state()
        const when = open?.paused === undefined ? 'joins at the next step' : 'waits until the turn resumes'
        process.stdout.write(style.dim(`(${when})\n`))
      }
    }
    if (leaving && busy !== undefined) process.exitCode = EXIT.interrupted
    else await watching
    if (!interactive && process.exitCode === undefined) await tellWhatWaits(session, options)
  } finally {
    lines?.close()
    await engine.stop(leaving ? 0 : undefined)
    await runtime.close()
    if (interactive)
      console.log(style.dim(`\nContinue with: ${commandLine(`chat --session ${session.key.session}`, options)}`))
  }
}

/** Without a terminal nobody can decide: pending approvals stay pending. */
async function tellWhatWaits(session: Session, options: ChatCommand): Promise<void> {
  if ((await session.state()).turn?.paused === undefined) return
  for (const it of await waiting(session))
    console.log(approvalCard(it, plain, publicApprovalId(session.key, it.approvalId)))
  console.error(
    `oxbow: the turn is waiting. Resume with: ${commandLine(`chat --session ${session.key.session}`, options)}`,
  )
  process.exitCode = EXIT.waiting
}

async function show(
  session: Session,
  { turnId, after }: Pick<Submitted, 'turnId' | 'after'>,
  write: (item: SessionItem) => void,
): Promise<void> {
  for await (const item of session.follow({ after })) {
    if (!('turnId' in item) || item.turnId !== turnId) continue
    write(item)
    // A script cannot detect failures in a pipe: the exit code reports them.
    if (item.type === 'turn.failed' && process.stdin.isTTY !== true) process.exitCode = EXIT.failed
    if (item.type === 'turn.paused') {
      // A later event has ended an earlier pause.
      if ((await session.state()).turn?.paused?.seq !== item.seq) continue
      if (isReleasable(item.reason)) process.stdout.write('/release resumes it.\n')
      return
    }
    if (ENDS.has(item.type)) return
  }
}

const ENDS: ReadonlySet<string> = new Set(['turn.finished', 'turn.failed', 'turn.cancelled'])

/** The state of the named session: a mistyped id is a new session. */
function whatIsThere({ messages, turn }: SessionState): string {
  if (messages.length === 0) return '(a new session)'
  const asked = messages.find((it) => it.id === turn?.turnId)
  const said = asked?.blocks.map((it) => (it.type === 'text' ? it.text : '[…]')).join(' ')
  const open = said === undefined ? '' : `, in the turn "${printable(said)}"`
  return `(continues after ${messages.length} messages${open})`
}

const COMMANDS = `/release  resume a paused or parked turn
/usage    show the usage of the turn and the session
/exit     quit; so does Ctrl-D
/help     show this help`
