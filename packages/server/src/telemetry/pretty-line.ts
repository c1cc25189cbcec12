// A log line in readable form for a terminal.

const COLOURS: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 31 }

/** `12:04:55.120 INFO  request method=GET status=200`, followed by the stack of an error. */
export function prettyLine(json: string): string {
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(json)
  } catch {
    // Redaction made the line invalid JSON.
    return json
  }
  const { level, time, msg, err, ...rest } = entry
  const name = String(level)
  const fields = Object.entries(rest).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const { stack, message } = (err ?? {}) as { stack?: string; message?: string }
  const trace = stack ?? message
  const clock = String(time).slice(11, 23)
  const label = `\u001b[${COLOURS[name] ?? 0}m${name.toUpperCase().padEnd(5)}\u001b[0m`
  const line = [clock, label, String(msg ?? ''), ...fields].join(' ')
  return trace === undefined ? `${line}\n` : `${line}\n${trace}\n`
}
