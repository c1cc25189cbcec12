import { text } from 'node:stream/consumers'
import { OxbowError, type TurnResult } from '@oxbow/core'
import { EXIT } from '../exit-codes.ts'
import { configOf, openBackend, openEngine, type RuntimeOptions } from '../runtime.ts'

export interface RunCommand extends RuntimeOptions {
  readonly prompt: string
  readonly json?: boolean
  readonly session?: string
  readonly turn?: string
  readonly user: string
}

/** One turn. Sets the process's exit code. */
export async function run(options: RunCommand): Promise<void> {
  const config = await configOf(options)
  const prompt = options.prompt === '-' ? await text(process.stdin) : options.prompt
  const backend = openBackend(config)
  const engine = openEngine(config, backend)
  const controller = new AbortController()
  let interrupted = false
  process.once('SIGINT', () => {
    interrupted = true
    controller.abort()
    process.once('SIGINT', () => process.exit(EXIT.interrupted))
  })
  try {
    const { user, session: name, turn } = options
    const session = engine.session({ user, ...(name !== undefined && { session: name }) })
    const result = await session.run(prompt, {
      surface: 'cli',
      signal: controller.signal,
      ...(turn !== undefined && { turnId: turn }),
    })
    print(options, session.key.session, result)
    process.exitCode = interrupted ? EXIT.interrupted : exitCodeOfResult(result)
  } catch (error) {
    if (options.json && error instanceof OxbowError) {
      const { code, message, retryable, details } = error
      console.log(JSON.stringify({ error: { code, message, retryable, ...details } }))
    }
    throw error
  } finally {
    await engine.stop()
    await backend.close()
  }
}

function print({ json }: RunCommand, session: string, result: TurnResult): void {
  if (json) console.log(JSON.stringify({ session, ...result }))
  else if (result.text !== '') console.log(result.text)
  if (!json && result.status !== 'finished')
    console.error(`oxbow: ${result.status}: ${result.reason} (session ${session})`)
}

function exitCodeOfResult({ status }: TurnResult): number {
  if (status === 'finished') return EXIT.ok
  return status === 'paused' ? EXIT.waiting : EXIT.stopped
}
