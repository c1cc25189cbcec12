// What the command line says about how a turn ended or why it waits, and which command goes on.

/** Why a turn ended or pauses, as a sentence part. */
const REASONS: Readonly<Record<string, string>> = {
  max_steps: 'it had used up its steps before it was done (agent.maxSteps)',
  length: 'the answer was cut off at the longest length (agent.maxOutputTokens, or the model’s own limit)',
  filtered: 'the provider’s content filter held the answer back',
  refusal: 'the model refused to answer',
  external: 'it waits for the result of an external call',
  approval: 'it waits for an approval',
  manual: 'it was paused by hand',
  recovery_limit: 'it was broken off too often and is set aside',
}

export const reasonInWords = (reason: string): string => REASONS[reason] ?? reason

/** Turns that wait for nothing but `oxbow sessions release`. */
export const isReleasable = (reason: string): boolean => reason === 'manual' || reason === 'recovery_limit'

interface Where {
  readonly user: string
  readonly store?: string | undefined
  readonly model?: string | undefined
}

/** A command that finds the same session with the same model: what was given on the command line is given again. */
export function commandLine(command: string, { user, store, model }: Where): string {
  const options = { user: user === 'default' ? undefined : user, store, model }
  return Object.entries(options).reduce(
    (line, [name, value]) => (value === undefined ? line : `${line} --${name} ${quoted(value)}`),
    `oxbow ${command}`,
  )
}

const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
