// A measured implementation, which answers one question with one tool call, streaming the text.

export interface Contender {
  /** Runs one turn of a session and resolves with the milliseconds to the first text. `session` counts from 0. */
  turn(session: number): Promise<{ firstTextMs: number; characters: number }>
  close(): Promise<void>
}

export interface ContenderOptions {
  /** The model server, with `/v1`. */
  readonly url: string
  /** A directory that may be written. */
  readonly directory: string
}

export type StartContender = (options: ContenderOptions) => Promise<Contender>

export const QUESTION = 'What does the word mean?'
export const INSTRUCTIONS = 'You explain words.'
export const lookup = (word: string): string => `${word}: a bend of a river`
