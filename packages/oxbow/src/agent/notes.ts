// Notes that the agent keeps for its user. Their owner comes from the principal; the model never sees or names it.
import { type Files, type Principal, type SessionKey, type Tool, tool } from '@oxbow/core'

const MAX_LENGTH = 4_000
const MAX_LISTED = 50

interface Note {
  readonly text: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/** Notes belong to the user, not to one conversation: all of the user's sessions share their name. */
const ownerOf = (principal: Principal, session: SessionKey): SessionKey => ({
  tenant: session.tenant,
  user: principal.user,
  session: '.notes',
})

export function noteTools(files: Files): Tool[] {
  const saveNote = tool({
    name: 'save_note',
    description:
      'Saves a note for the user, so that it can be listed in any later conversation. Use it only when asked to.',
    effects: ['write'],
    idempotent: true,
    input: {
      type: 'object',
      properties: { text: { type: 'string', description: 'The note.', minLength: 1, maxLength: MAX_LENGTH } },
      required: ['text'],
      additionalProperties: false,
    },
    async run({ text }, { principal, session, operationId }) {
      const note: Note = { text: String(text), at: Date.now() }
      // The operation id is the name, so a repeated call finds its own note and leaves it unchanged.
      await files.put(ownerOf(principal, session), `notes/${operationId}`, Buffer.from(JSON.stringify(note)), 0)
      return 'Saved.'
    },
  })

  const listMyNotes = tool({
    name: 'list_my_notes',
    description: "Lists the user's saved notes, the newest first.",
    effects: ['read'],
    input: { type: 'object', properties: {}, additionalProperties: false },
    async run(_, { principal, session }) {
      const owner = ownerOf(principal, session)
      const names = await files.list(owner, 'notes/')
      const stored = await Promise.all(names.map((it) => files.get(owner, it.path)))
      const notes = stored
        .filter((it) => it !== undefined)
        .map((it) => JSON.parse(Buffer.from(it.data).toString()) as Note)
        .sort((a, b) => b.at - a.at)
      if (notes.length === 0) return 'There are no notes yet.'
      const lines = notes.slice(0, MAX_LISTED).map((it) => `- ${new Date(it.at).toISOString().slice(0, 16)} ${it.text}`)
      const more = notes.length > MAX_LISTED ? `\n(${notes.length - MAX_LISTED} older notes are not shown)` : ''
      return lines.join('\n') + more
    },
  })

  return [saveNote, listMyNotes]
}
