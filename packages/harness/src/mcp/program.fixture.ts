// A server of 2025-11-25 over standard input and output: `node program.fixture.ts BEHAVIOUR`.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

interface Request {
  id?: number | string
  method: string
  params?: { name?: string; arguments?: Record<string, unknown>; _meta?: { progressToken?: unknown } }
}

const behaviour = process.argv[2] ?? 'good'
const send = (message: object): void => {
  const text = JSON.stringify({ jsonrpc: '2.0', ...message })
  process.stdout.write(`${behaviour === 'batches' ? `[${text}]` : text}\n`)
}
const result = (text: string): object => ({ content: [{ type: 'text', text }] })

if (behaviour === 'broken') {
  console.error('cannot start: the key super-secret is wrong')
  process.exit(3)
}
if (behaviour === 'noisy') console.log('Welcome to the server!\n{"half": ')
if (behaviour === 'banner') process.stdout.write('Listening on stdio ')
if (behaviour === 'marked') process.stdout.write('\uFEFF')
if (behaviour === 'chatty') {
  process.stdout.write('Starting … ')
  process.stdin.resume()
  await new Promise(() => {})
}
if (behaviour === 'stubborn') {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1_000)
}
/** Like `npx` and shells: a child process does the work. */
const child = behaviour === 'parent' ? spawn('sleep', ['600'], { stdio: 'ignore' }) : undefined

function call({ id, params }: Request): void {
  const answer = (text: string): void => send({ id, result: result(text) })
  switch (params?.name) {
    case 'environment':
      answer(Object.keys(process.env).sort().join(' '))
      return
    case 'pids':
      answer(JSON.stringify([process.pid, ...(child?.pid === undefined ? [] : [child.pid])]))
      return
    case 'die':
      process.exit(1)
      return
    case 'hang':
      return
    case 'twice':
      answer('first')
      answer('second')
      return
    case 'flood': {
      const token = params._meta?.progressToken
      for (let at = 1; at <= 5_000; at++)
        send({ method: 'notifications/progress', params: { progressToken: token, progress: at } })
      answer('flooded')
      return
    }
    case 'huge':
      answer('x'.repeat(Number(params.arguments?.length ?? 0)))
      return
    case 'garbage':
      process.stdout.write('this is not JSON\n{"jsonrpc":"2.0","id":\n[]\n')
      answer('after the garbage')
      return
    case 'grow':
      names.push('grown')
      names.splice(names.indexOf('hang'), 1)
      send({ method: 'notifications/tools/list_changed' })
      answer('grown')
      return
    case 'spoil':
      names.unshift('')
      send({ method: 'notifications/tools/list_changed' })
      answer('spoilt')
      return
    case 'confirm':
      asking = id
      send({
        id: 'question',
        method: 'elicitation/create',
        params: {
          message: 'Really delete it?',
          requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] },
        },
      })
      return
    default:
      answer(`no such thing as ${params?.name}`)
  }
}

const names = 'environment pids die hang twice flood huge garbage grow spoil confirm'.split(' ')
let asking: Request['id']

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line) as Request & { result?: { action: string; content?: unknown } }
  const { id, method } = message
  if (message.result !== undefined && asking !== undefined) {
    const { action, content } = message.result
    send({ id: asking, result: result(`${action} ${JSON.stringify(content ?? {})}`) })
    asking = undefined
  } else if (id === undefined) continue
  else if (method === 'server/discover') {
    // Programs of older libraries exit at any message before the handshake.
    if (behaviour === 'old') process.exit(1)
    send({ id, error: { code: -32601, message: 'Method not found' } })
  } else if (method === 'initialize')
    send({
      id,
      result: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'program', version: '1.0.0' },
      },
    })
  else if (method === 'tools/list')
    send({ id, result: { tools: names.map((name) => ({ name, inputSchema: { type: 'object' } })) } })
  else if (method === 'tools/call') call(message)
}
if (behaviour !== 'stubborn') {
  child?.unref()
  process.exit(0)
}
