import { defined } from '@oxbow/core/internal'
import { type ListedModel, modelFacts, type Price, type ProbeCheck, probeModel } from '@oxbow/models'
import { EXIT } from '../exit-codes.ts'
import { configOf, openModels, type RuntimeOptions } from '../runtime.ts'
import { coloured, plain, printable } from '../terminal/transcript.ts'

interface ModelsCommand extends RuntimeOptions {
  readonly json?: boolean
}

export async function listModels(options: ModelsCommand): Promise<void> {
  const all = await Promise.all(
    openModels(await configOf(options))
      .list()
      .map(withFacts),
  )
  if (options.json) for (const it of all) console.log(JSON.stringify(it))
  else for (const it of all) console.log(printable(inWords(it)))
}

/** Sets the exit code, so that a script can wait for a model or monitor one. */
export async function testModel(name: string | undefined, options: ModelsCommand): Promise<void> {
  const models = openModels(await configOf(options))
  const wanted = name ?? 'default'
  const probe = models.probe(wanted)
  const say = (text: string): void => console.log(printable(text))
  if (probe === undefined) {
    if (options.json) say(JSON.stringify({ model: 'offline:offline', checks: [] }))
    else say('The offline model runs in this process without a language model. There is nothing to test.')
    return
  }
  const { baseUrl: _, open: __, ...about } = probe
  if (!options.json) {
    const key = about.keyVariable === undefined ? 'no key' : `key from ${about.keyVariable}`
    const proxy = about.proxy === undefined ? '' : `, through ${about.proxy}`
    say(`${wanted}: ${about.model} (${key}${proxy})`)
  }
  const stop = new AbortController()
  process.once('SIGINT', () => process.exit(EXIT.interrupted))
  for await (const check of probeModel(probe, stop.signal)) {
    if (check.result === 'failed') process.exitCode = EXIT.model
    if (options.json) say(JSON.stringify({ ...about, ...check }))
    else console.log(lineOf(check))
  }
}

const MARKS = { ok: '✓', warning: '!', failed: '✗' } as const

function lineOf({ name, result, detail, diagnosis }: ProbeCheck): string {
  const style = process.stdout.isTTY && process.env.NO_COLOR === undefined ? coloured : plain
  const line = `  ${MARKS[result]} ${name.padEnd(18)} ${printable(detail)}`
  const advice = diagnosis === undefined ? '' : `\n    ${diagnosis.fault}: ${printable(diagnosis.advice)}`
  return result === 'failed' ? style.red(line + advice) : line + advice
}

/** Filled from the public list where the configuration has no value. */
async function withFacts(it: ListedModel): Promise<ListedModel> {
  const facts = await modelFacts(it.model)
  const price = it.price ?? publicPrice(facts)
  const contextWindow = it.contextWindow ?? facts.contextWindow
  return { ...it, ...defined({ price, contextWindow }) }
}

/** For short requests: long ones may cost more. */
function publicPrice({ cost }: Awaited<ReturnType<typeof modelFacts>>): Price | undefined {
  const none = { inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 }
  const perMillion = (usage: Partial<typeof none>): number | undefined => {
    const dollars = cost({ ...none, ...usage, estimated: false })
    return dollars === undefined ? undefined : Number((dollars * 1_000).toPrecision(6))
  }
  const input = perMillion({ inputTokens: 1_000 })
  const output = perMillion({ outputTokens: 1_000 })
  return input === undefined || output === undefined ? undefined : { input, output }
}

function inWords({ name, model, aliases, address, key, price, contextWindow, fallbacks }: ListedModel): string {
  const parts = [
    ...(name === model ? [] : [model]),
    ...(address === undefined ? [] : [address]),
    ...(key === undefined ? ['no key needed'] : [`key ${key.variable} (${key.present ? 'set' : 'missing'})`]),
    price === undefined ? 'price unknown' : `$${price.input} in, $${price.output} out per million tokens`,
    contextWindow === undefined ? 'window unknown' : `window ${contextWindow} tokens`,
    ...(fallbacks.length === 0 ? [] : [`else ${fallbacks.map((it) => it.model).join(' or ')}`]),
  ]
  return `${name}${aliases.length === 0 ? '' : ` [${aliases.join(', ')}]`}\n  ${parts.join(' · ')}`
}
