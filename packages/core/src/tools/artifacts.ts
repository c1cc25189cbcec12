// Long results: the model reads head, tail and a reference; the whole is stored next to the journal.
import { ToolError } from '../errors.ts'
import type { InputBlock } from '../events/types.ts'
import type { Files, SessionKey } from '../ports.ts'
import { tool } from './tool.ts'

const PAGE = 8_000
const pathOf = (id: string): string => `artifacts/${id}`

/** Stores the text of a result that is longer than `limit` characters and returns what the model is shown instead. */
export async function offload(
  files: Files,
  owner: SessionKey,
  id: string,
  content: readonly InputBlock[],
  limit: number,
): Promise<{ content: InputBlock[]; artifact?: { id: string; bytes: number } }> {
  const text = content
    .filter((it) => it.type === 'text')
    .map((it) => it.text)
    .join('\n')
  const shown = await Promise.all(content.map((it, index) => showable(files, owner, `${id}.${index}`, it)))
  if (text.length <= limit) return { content: shown }

  const data = Buffer.from(text)
  await files.put(owner, pathOf(id), data)
  const head = wholeCharacters(text.slice(0, Math.ceil(limit * 0.6)))
  const tail = wholeCharacters(text.slice(text.length - Math.floor(limit * 0.3)))
  const notice =
    `[${text.length - head.length - tail.length} of ${text.length} characters omitted. ` +
    `Read more with read_artifact: {"id":"${id}","offset":${head.length}}]`
  return {
    content: [{ type: 'text', text: `${head}\n\n${notice}\n\n${tail}` }, ...shown.filter((it) => it.type !== 'text')],
    artifact: { id, bytes: data.length },
  }
}

export async function loadArtifact(files: Files, owner: SessionKey, id: string): Promise<string | undefined> {
  const file = await files.get(owner, pathOf(id))
  return file === undefined ? undefined : Buffer.from(file.data).toString('utf8')
}

/** Files above this many characters of base64 are stored next to the journal and only named. */
const MAX_DATA = 4_000_000

async function showable(files: Files, owner: SessionKey, id: string, block: InputBlock): Promise<InputBlock> {
  if (block.type === 'text' || (block.data?.length ?? 0) <= MAX_DATA) return block
  await files.put(owner, pathOf(id), Buffer.from(block.data!, 'base64'))
  const bytes = Math.floor((block.data!.length * 3) / 4)
  return {
    type: 'text',
    text: `[${block.name ?? block.mediaType}, ${bytes} bytes: too large to show; stored as artifact ${id}]`,
  }
}

/** Never cuts a surrogate pair. */
const wholeCharacters = (text: string): string => text.replace(/^[\udc00-\udfff]/, '').replace(/[\ud800-\udbff]$/, '')

export const readArtifact = tool({
  name: 'read_artifact',
  description:
    'Reads a page of a result that was too long to show whole. Use the id from the notice in that result; ' +
    'offset and length count characters.',
  effects: ['read'],
  input: {
    type: 'object',
    properties: {
      id: { type: 'string' },
      offset: { type: 'integer', minimum: 0, default: 0 },
      length: { type: 'integer', minimum: 1, maximum: PAGE, default: PAGE },
    },
    required: ['id'],
    additionalProperties: false,
  },
  async run(input, { artifact }) {
    const { id, offset = 0, length = PAGE } = input as { id: string; offset?: number; length?: number }
    const text = await artifact(id)
    if (text === undefined) throw new ToolError(`No artifact ${JSON.stringify(id)} in this session.`)
    const page = wholeCharacters(text.slice(offset, offset + length))
    return `[characters ${offset} to ${offset + page.length} of ${text.length}]\n${page}`
  },
})
