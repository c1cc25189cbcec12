// Properties of the recorded answers in every format: the same reply however the bytes are split, the same after
// changes without meaning, a typed error with the partial answer after changes that break it.
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
/** Undefined when the recordings are present; otherwise the reason to skip. */
const noRecordings = existsSync(streams) ? undefined : 'the recorded streams are not available'

/** The recordings in a format, as the bytes of a body. */
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

/** Each line as an event named by its outermost type. */
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
  /** The providers that have recordings. */
  readonly providers: readonly string[]
  modelAt(server: { readonly url: string }, options?: { readonly timeouts?: Timeouts }): Model
  assemble(): ReplyAssembler
  /** The driver's result, and that of the provider's own client. */
  judge(recording: Recording, reply: ModelReply): Promise<{ readonly found: object; readonly official: object }>
  /** The errors of recordings that are not answers, by name. */
  readonly inVain?: Readonly<Record<string, Partial<ModelError>>>
  /** Where the frame begins that completes the answer, and a place within it. */
  endOf(body: string): { readonly frame: number; readonly within: number }
  /** Frames that a gateway may duplicate without a change of the answer. */
  mayDouble(frame: string): boolean
  /** The index of a block or an item in a frame, which some gateways start at one. */
  readonly index?: RegExp
  /** An event that signals activity. */
  readonly signOfLife?: string
  /** A frame with an error object that reports an overloaded provider. */
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

  /** The whole path from bytes to a reply, without HTTP, for thousands of runs. */
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
      '$name is not an answer and is reported as an error',
      async ({ name, body }) => {
        const { error } = await askInVain(modelAt(await serve({ raw: [body] })))
        expect(error).toMatchObject(inVain[name]!)
      },
    )

    test.each(small)('$name is the same wherever it is split in two', ({ body }) => {
      const whole = parse([body])
      for (let cut = 1; cut < body.length; cut++) {
        expect(parse([body.subarray(0, cut), body.subarray(cut)])).toEqual(whole)
      }
      expect(parse([...body].map((byte) => Uint8Array.of(byte)))).toEqual(whole)
    })

    test.each(recordings.filter((recording) => !small.includes(recording)))(
      '$name is the same after random splits',
      ({ body }) => {
        const whole = parse([body])
        const random = generator(body.length)
        for (const size of [3, 50, 1_500]) {
          expect(parse(cutAtRandom(body, size, random))).toEqual(whole)
        }
      },
    )

    test('splits inside frames and characters do not matter over HTTP', async () => {
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

    test.each(answers)('$name without its end is a cut stream with the partial answer', async ({ body }) => {
      const { frame, within } = format.endOf(body.toString('latin1'))
      const before = parse([body.subarray(0, frame)])
      for (const end of [frame, within]) {
        const { error } = await askInVain(modelAt(await serve({ raw: [body.subarray(0, end)] })))
        expect(error).toMatchObject({ code: 'stream_cut', retryable: true })
        expect(error.partial?.blocks ?? []).toEqual(before.reply.blocks)
      }
      // A broken connection may lose unread data, but everything streamed is kept: `askInVain` checks it.
      const { error } = await askInVain(modelAt(await serve({ raw: [body], cutAfterBytes: frame })))
      expect(error).toMatchObject({ code: 'stream_cut', retryable: true })
    })

    const { index, signOfLife } = format
    // A format without them has no such tests: a skipped one would look as if something were missing.
    test.each(index === undefined ? [] : [index])('indexes that start at one change nothing', async (places) => {
      const shift = (found: string) => found.replace(/\d+/, (digits) => String(Number(digits) + 1))
      for (const { body } of answers) {
        const shifted = body.toString().replace(places, shift)
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
      ['signs of life that are not JSON', (body: string) => `data: ping\n\n${body}`],
      ['an event of an unknown kind', (body: string) => `data: {"type":"new.thing","delta":null}\n\n${body}`],
      [
        'duplicate frames',
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

    /** The part before the end, and half of the rest. */
    const halves = () =>
      answers
        .filter(({ body }) => body.length < 20_000)
        .map(({ body }) => body.subarray(0, format.endOf(body.toString('latin1')).frame))

    test('an error object in place of the end is a typed error with the partial answer', async () => {
      for (const half of halves()) {
        const raw = [half, Buffer.from(format.errorFrame)]
        const { error } = await askInVain(modelAt(await serve({ raw })))
        expect(error).toMatchObject({ code: 'overloaded', retryable: true })
        expect(error.partial?.blocks ?? []).toEqual(parse([half]).reply.blocks)
      }
    })

    test.each(signOfLife === undefined ? [] : [signOfLife])(
      'the format’s signs of life reset the idle limit: a model may think for long',
      async (sign) => {
        const [{ body }] = answers as [Recording]
        const raw = [...Array.from({ length: 8 }, () => Buffer.from(sign)), body]
        const server = await serve({ raw, betweenChunks: 40 })
        const { reply } = await ask(modelAt(server, { timeouts: { idleMs: 200 } }))
        expect(reply).toEqual(parse([body]).reply)
      },
    )

    test('silence in place of the end is an idle_timeout with the partial answer', async () => {
      for (const half of halves().slice(0, 3)) {
        const server = await serve({ raw: [half], silentAfterChunks: 1 })
        const { error } = await askInVain(modelAt(server, { timeouts: { idleMs: 50 } }))
        expect(error).toMatchObject({ code: 'idle_timeout', retryable: true })
        expect(error.partial?.blocks ?? []).toEqual(parse([half]).reply.blocks)
      }
    })
  })
}

/** A small deterministic generator of numbers in [0, 1). */
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
