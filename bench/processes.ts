// Child processes of the benchmarks.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

export interface ModelServer {
  readonly url: string
  close(): void
}

export async function startModelServer(): Promise<ModelServer> {
  const child = fork(script('./server.ts'))
  const { url } = await new Promise<{ url: string }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { url: string }))
    child.once('exit', () => reject(new Error('the model server did not start')))
  })
  return { url, close: () => child.disconnect() }
}

/** Runs one job in a fresh process and resolves with what it sends back. */
export function inProcess<Result>(file: string, job: object, execArgv: readonly string[] = []): Promise<Result> {
  const child = fork(script(file), { execArgv: [...process.execArgv, ...execArgv] })
  child.send(job)
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as Result))
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code} and no result`)))
  })
}
