// What holds for the recorded answers of every format: the same reply wherever the bytes are cut, the same after
// changes that mean nothing, a typed error with what had come after changes that break it.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Model, ModelError, ModelReply } from '@oxbow/core'
import { scriptedModel } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { ask, askInVain, serve } from '../asking.fixture.ts'
import type { ReplyAssembler, WireFault } from './assembler.ts'
import type { Timeouts } from './clock.ts'
import { sseReader } from './sse.ts'

export interface Recording {
  readonly name: string
  readonly body: Buffer
}

const streams = join(import.meta.dirname, '../../../../../shared/cases/streams')
/** Undefined where the recordings are: a reason to skip elsewhere. */
const noRecordings = existsSync(streams) ? undefined : 'the recorded streams are not beside this checkout'

/** The recordings whose content a format knows as its own, as the bytes of a body. */
export function recordingsOf(isOwn: (content: string) => boolean, toBody: (lines: string[]) => string): Recording[] {
  if (noRecordings) return []
  return readdirSync(streams, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.sse') || path.endsWith('.chunks.txt'))
    .sort()
    .flatMap((path) => {
      const content = readFileSync(join(streams, path), 'utf8')
      if (!isOwn(content)) return []
      return [
        { name: path, body: Buffer.from(path.endsWith('.sse') ? content : toBody(content.trimEnd().split('\n'))) },
      ]
    })
}

/** Each line as an event with the name of its type, which is the outermost one. */
export const toNamedEvents = (lines: readonly string[]): string =>
  lines.map((line) => `event: ${parsed(line)?.type ?? 'broken'}\ndata: ${line}\n\n`).join('')

function parsed(json: string): { readonly type?: string } | undefined {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

export interface RecordedFormat {
  readonly recordings: readonly Recording[]
  /** The providers that there are recordings of. */
  readonly providers: readonly string[]
  modelAt(server: { readonly url: string }, options?: { readonly timeouts?: Timeouts }): Model
  assemble(): ReplyAssembler
  /** What the driver has found, and what the provider's own client finds. */
  judge(recording: Recording, reply: ModelReply): Promise<{ readonly found: object; readonly official: object }>
  /** What is told of answers that are none, by the name of the recording. */
  readonly inVain?: Readonly<Record<string, Partial<ModelError>>>
  /** Where the frame begins that says that the answer is whole, and a place within it. */
  endOf(body: string): { readonly frame: number; readonly within: number }
  /** Frames that a gateway may send twice without a change of the answer. */
  mayDouble(frame: string): boolean
  /** The index of a block or an item in a frame, which some gateways count from one. */
  readonly index?: RegExp
  /** An event that says that the provider is at work. */
  readonly signOfLife?: string
  /** A frame with an error object that says that the provider is overloaded. */
  readonly errorFrame: string
}

interface Parsed {
  readonly reply: ModelReply
  readonly fault: WireFault | undefined
}

export function describeRecordings(format: RecordedFormat): void {
  const { recordings, modelAt, inVain = {} } = format
  const answers = recordings.filter(({ name }) => !Object.hasOwn(inVain, name))
  const small = recordings.filter(({ body }) => body.length < 3_000)

  /** The whole way from bytes to a reply, without HTTP, for thousands of runs. */
  const parse = (pieces: readonly Uint8Array[]): Parsed => {
    const assembler = format.assemble()
    let fault: WireFault | undefined
    const reader = sseReader((data) => {
      if (data === '[DONE]') return
      const frame = parsed(data)
      fault ??= frame ? assembler.frame(frame) : { type: 'error', error: 'broken JSON' }
    })
    for (const piece of pieces) reader.push(piece)
    reader.end()
    return { reply: assembler.reply(), fault }
  }

  describe.skipIf(noRecordings)(`recorded answers${noRecordings ? `: skipped, ${noRecordings}` : ''}`, () => {
    test('there are recordings of each provider', () => {
      const folders = new Set(recordings.map(({ name }) => name.split('/')[0]))
      expect([...folders].sort()).toEqual(format.providers)
      expect(recordings.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(inVain)))
    })

    test.each(answers)('$name is read as the provider’s own client reads it', async (recording) => {
      const { reply } = await ask(modelAt(await serve({ raw: [recording.body] })))
      expect(reply.blocks.every((block) => block.type !== 'text' || block.text !== '')).toBe(true)
      const { found, official } = await format.judge(recording, reply)
      expect(found).toEqual(official)
    })

    test.each(recordings.filter(({ name }) => Object.hasOwn(inVain, name)))(
      '$name is no answer and is told as an error',
      async ({ name, body }) => {
        const { error } = await askInVain(modelAt(await serve({ raw: [body] })))
        expect(error).toMatchObject(inVain[name]!)
      },
    )

    test.each(small)('$name is the same wherever it is cut in two', ({ body }) => {
      const whole = parse([body])
      for (let cut = 1; cut < body.length; cut++) {
        expect(parse([body.subarray(0, cut), body.subarray(cut)])).toEqual(whole)
      }
      expect(parse([...body].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
    })

    test.each(recordings.filter((recording) => !small.includes(recording)))(
      '$name is the same after random cuts',
      ({ body }) => {
        const whole = parse([body])
        const random = generator(body.length)
        for (const size of [3, 50, 1_500]) {
          expect(parse(cutAtRandom(body, size, random))).toEqual(whole)
        }
      },
    )

    test('cuts inside frames and characters do not matter over HTTP', async () => {
      for (const { body } of answers.filter((recording) => small.includes(recording))) {
        const server = await scriptedModel({
          scripts: { '*': [{ raw: [body] }] },
          writeBytes: 11,
          oneWritePerTurn: true,
        })
        expect((await ask(modelAt(server))).reply).toEqual(parse([body]).reply)
        await server.close()
      }
    })

    test.each(answers)('$name without its end is a cut stream that keeps what had come', async ({ body }) => {
      const { frame, within } = format.endOf(body.toString('latin1'))
      const before = parse([body.subarray(0, frame)])
      for (const end of [frame, within]) {
        const { error } = await askInVain(modelAt(await serve({ raw: [body.subarray(0, end)] })))
        expect(error).toMatchObject({ code: 'stream_cut', retryable: true })
        expect(error.partial?.blocks ?? []).toEqual(before.reply.blocks)
      }
      // A broken connection may lose what was not read yet, but what was shown is what is kept: `askInVain` checks it.
      const { error } = await askInVain(modelAt(await serve({ raw: [body], cutAfterBytes: frame })))
      expect(error).toMatchObject({ code: 'stream_cut', retryable: true })
    })

    test.runIf(format.index)('indexes that start at one change nothing', async () => {
      const shift = (found: string) => found.replace(/\d+/, (digits) => String(Number(digits) + 1))
      for (const { body } of answers) {
        const shifted = body.toString().replace(format.index!, shift)
        const { reply } = await ask(modelAt(await serve({ raw: [Buffer.from(shifted)] })))
        expect(reply).toEqual(parse([body]).reply)
      }
    })

    const frames = (body: string): string[] => body.split(/(?<=\n\n)/)
    test.each([
      ['comments between all frames', (body: string) => body.replaceAll('\n\n', '\n\n: OPENROUTER PROCESSING\n\n')],
      ['a flood of signs of life', (body: string) => `${': ping\n\n'.repeat(20_000)}${body}`],
      ['CR LF', (body: string) => body.replaceAll('\n', '\r\n')],
      ['a byte order mark', (body: string) => `\uFEFF${body}`],
      ['U+2028 inside a frame', (body: string) => body.replaceAll('data: {', 'data: {"note":"a\u2028b\u0085c",')],
      ['signs of life that are no JSON', (body: string) => `data: ping\n\n${body}`],
      ['an event of a kind that nobody knows', (body: string) => `data: {"type":"new.thing","delta":null}\n\n${body}`],
      [
        'frames that come twice',
        (body: string) =>
          frames(body)
            .map((it) => (format.mayDouble(it) ? it + it : it))
            .join(''),
      ],
    ])('%s changes nothing', async (_, mutate) => {
      for (const { body } of answers.filter((recording) => recording.body.length < 20_000)) {
        const mutated = Buffer.from(mutate(body.toString()))
        expect(mutated.equals(body)).toBe(false)
        const { reply } = await ask(modelAt(await serve({ raw: [mutated] })))
        expect(reply).toEqual(parse([body]).reply)
      }
    })

    /** What came before the end, and the half that is the rest. */
    const halves = () =>
      answers
        .filter(({ body }) => body.length < 20_000)
        .map(({ body }) => body.subarray(0, format.endOf(body.toString('latin1')).frame))

    test('an error object in the place of the end is a typed error with what had come', async () => {
      for (const half of halves()) {
        const raw = [half, Buffer.from(format.errorFrame)]
        const { error } = await askInVain(modelAt(await serve({ raw })))
        expect(error).toMatchObject({ code: 'overloaded', retryable: true })
        expect(error.partial?.blocks ?? []).toEqual(parse([half]).reply.blocks)
      }
    })

    test.runIf(format.signOfLife)(
      'signs of life of the format put the idle limit off: a model may think for long',
      async () => {
        const [{ body }] = answers as [Recording]
        const raw = [...Array.from({ length: 8 }, () => Buffer.from(format.signOfLife!)), body]
        const server = await serve({ raw, betweenChunks: 40 })
        const { reply } = await ask(modelAt(server, { timeouts: { idleMs: 200 } }))
        expect(reply).toEqual(parse([body]).reply)
      },
    )

    test('silence in the place of the end is an idle_timeout with what had come', async () => {
      for (const half of halves().slice(0, 3)) {
        const server = await serve({ raw: [half], silentAfterChunks: 1 })
        const { error } = await askInVain(modelAt(server, { timeouts: { idleMs: 50 } }))
        expect(error).toMatchObject({ code: 'idle_timeout', retryable: true })
        expect(error.partial?.blocks ?? []).toEqual(parse([half]).reply.blocks)
      }
    })
  })
}

/** A small generator of numbers in [0, 1) that are the same in each run. */
export function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

/** The bytes in pieces of 1 to twice `size`. */
export function cutAtRandom(body: Uint8Array, size: number, random: () => number): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (let at = 0; at < body.length; at += pieces.at(-1)!.length) {
    pieces.push(body.subarray(at, at + 1 + Math.floor(random() * 2 * size)))
  }
  return pieces
}
