import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Reply } from './reply.ts'
import { type ScriptedModelOptions, scriptedModel } from './scripted-model.ts'

/** Options that can be sent to another process: no functions, no gates. */
export interface SpawnOptions extends Pick<ScriptedModelOptions, 'chunkChars' | 'writeBytes' | 'oneWritePerTurn'> {
  readonly scripts: Readonly<Record<string, readonly Reply[] | { readonly always: Reply }>>
}

/** The other process runs this same file. */
const self = fileURLToPath(import.meta.url)

/**
 * A scripted model in its own process, so that its CPU time does not count as the client's. It ends with
 * `close()`, or when this process ends.
 *
 * @example
 * const server = await spawnScriptedModel({ scripts: { '*': { always: { text: 'hello' } } }, oneWritePerTurn: true })
 */
export async function spawnScriptedModel(
  options: SpawnOptions,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const child = fork(self, { serialization: 'advanced', execArgv: [] })
  const exited = once(child, 'exit')
  child.send(options)
  const [url] = await Promise.race([
    once(child, 'message'),
    exited.then(([code]) => Promise.reject(new Error(`the scripted model's process ended with ${code}`))),
  ])
  return {
    url: url as string,
    close: async () => {
      child.disconnect()
      await exited
    },
  }
}

if (process.argv[1] === self && process.send) {
  process.once('message', async (options: ScriptedModelOptions) => {
    const server = await scriptedModel(options)
    process.send!(server.url)
  })
  process.once('disconnect', () => process.exit())
}
