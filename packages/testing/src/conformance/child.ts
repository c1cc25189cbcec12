// A process of the suite: opens the back end, prints "ready", and then follows its command, one line of output per
// action.
//   child <module> <directory> append                  appends to several sessions until it is killed; tells "session
// head"
//   child <module> <directory> race <session> <wins>   appends single events until it won so often, and tells each win
//   child <module> <directory> leave <worker>          announces a worker and closes, and lives on until its input ends
//   child <module> <directory> hold <worker>           announces a worker; then one append per line of input
import { createInterface } from 'node:readline'
import type { Backend } from '@oxbow/core'
import { conformanceEvent, eventsAfter, someKey, summary } from './support.ts'

const [, , module, directory, task, name, count] = process.argv as [
  string,
  string,
  string,
  string,
  string,
  string,
  string,
]
const { open } = (await import(module)) as { open(directory: string): Promise<Backend> }
const backend = await open(directory)
const { journal, workers } = backend
// Synchronous on a pipe, so that a line is out when the next append begins.
const say = (line: string | number) => process.stdout.write(`${line}\n`)

async function appendForever(session: string): Promise<void> {
  const key = { ...someKey, session }
  for (let seq = await journal.head(key); ; ) {
    const events = eventsAfter(seq, 1 + (seq % 3), session.repeat(500))
    const answer = await journal.append(key, seq, events, summary)
    if (!answer.ok) throw new Error(`a lone appender met a conflict at ${answer.head}`)
    seq += events.length
    say(`${session} ${seq}`)
  }
}

async function race(wins: number): Promise<void> {
  const key = { ...someKey, session: name }
  let head = 0
  for (let won = 0; won < wins; ) {
    const answer = await journal.append(key, head, [conformanceEvent(head + 1, `process ${process.pid}`)], summary)
    head = answer.ok ? head + 1 : answer.head
    if (!answer.ok) continue
    won += 1
    say(head)
  }
}

async function hold(): Promise<void> {
  await workers.announce(name)
  say('ready')
  for await (const session of createInterface({ input: process.stdin })) {
    const own = { ...someKey, session }
    const head = await journal.head(own)
    await journal.append(own, head, [conformanceEvent(head + 1)], summary)
    say(`appended ${head + 1}`)
  }
}

async function leave(): Promise<void> {
  await workers.announce(name)
  await backend.close()
  say('ready')
  for await (const _line of createInterface({ input: process.stdin }));
}

if (task === 'hold') await hold()
else if (task === 'leave') await leave()
else {
  say('ready')
  if (task === 'append') await Promise.all(['one', 'two', 'three', 'four'].map(appendForever))
  else await race(Number(count))
  process.exit()
}
