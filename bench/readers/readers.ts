// One burst of a task with many readers: how long /healthz takes meanwhile, and the CPU that it costs.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { gate, scriptedModel } from '@oxbow/testing'
import { percentile } from '../statistics.ts'
import { post } from '../waiting/service.ts'

export interface ReadersFigures {
  readonly readers: number
  readonly fragments: number
  readonly cpuMs: number
  /** From the burst until every reader had the end. */
  readonly burstMs: number
  readonly healthMsWorst: number
  readonly healthMsMedian: number
}

const CHARACTERS = 6

/** @param detail of the Agent Protocol: what its readers see of the burst */
export async function manyReaders(readers: number, fragments: number, detail: string): Promise<ReadersFigures> {
  const held = gate()
  const model = await scriptedModel({ chunkChars: CHARACTERS })
  const text = 'burst '.repeat(fragments)
  model.script('*', [{ text, hold: { atChunk: 1, gate: held } }])
  const child = fork(fileURLToPath(new URL('./service.ts', import.meta.url)))
  try {
    child.send({ modelUrl: model.url, readers })
    const [{ url }] = (await once(child, 'message')) as [{ url: string }]
    await post(url, '/tasks', { task_id: 'burst', input: 'Go.', context: { detail } })
    await held.reached
    const ends: Promise<unknown>[] = []
    for (let at = 0; at < readers; at += 50)
      for (const { end } of await Promise.all(Array.from({ length: Math.min(50, readers - at) }, () => reader(url))))
        ends.push(end)
    const cpuBefore = await cpuMs(child)
    const probe = new Worker(new URL('./probe.ts', import.meta.url), { workerData: url })
    await once(probe, 'message')
    const startedAt = performance.now()
    held.open()
    await Promise.all(ends)
    const burstMs = performance.now() - startedAt
    probe.postMessage('stop')
    const [health] = (await once(probe, 'message')) as [number[]]
    return {
      readers,
      fragments,
      cpuMs: (await cpuMs(child)) - cpuBefore,
      burstMs,
      healthMsWorst: Math.max(...health),
      healthMsMedian: percentile(health, 50),
    }
  } finally {
    child.disconnect()
    await model.close()
  }
}

/** Resolves when the stream has begun, with a promise of its end. */
async function reader(url: string): Promise<{ end: Promise<unknown> }> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write('GET /tasks/burst/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  await once(socket, 'data')
  socket.on('data', () => {})
  return { end: once(socket, 'close') }
}

async function cpuMs(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [{ cpuMs }] = (await once(child, 'message')) as [{ cpuMs: number }]
  return cpuMs
}
