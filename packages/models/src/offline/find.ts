// Finds the kinds of values that tools need in a sentence.

const wordOperators: readonly (readonly [RegExp, string])[] = [
  [/%\s*of\b/g, '/100*'],
  [/\b(?:plus|added to)\b|加上|加/g, '+'],
  [/\bminus\b|减去|减/g, '-'],
  [/\b(?:times|multiplied by)\b|乘以|乘|×|(?<=\d)\s*x\s*(?=\d)/g, '*'],
  [/\b(?:divided by|over)\b|除以|÷/g, '/'],
  [/\bto the power of\b|的?次方/g, '^'],
]

/** An arithmetic expression, such as `2 + 3 * (4 - 1)`. */
export function findExpression(text: string): string | undefined {
  let plain = text
  for (const [pattern, operator] of wordOperators) plain = plain.replace(pattern, operator)
  const runs = plain.match(/[-(]*\d[\d\s.()+\-*/^%]*/g) ?? []
  const run = runs.filter((part) => /\d\s*\)*\s*[-+*/^%]\s*[-(]*\d/.test(part)).sort((a, b) => b.length - a.length)[0]
  return run?.trim().replace(/[.\s+\-*/^]+$/, '')
}

export const findNumbers = (text: string): number[] => (text.match(/(?<![\w.])-?\d+(?:\.\d+)?/g) ?? []).map(Number)

export const findQuoted = (text: string): string[] =>
  [...text.matchAll(/"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)/g)].map(
    (match) => match.slice(1).find((group) => group !== undefined)!,
  )

/**
 * A place: capitalised words after `in`, `at`, `for` or `of`, else any word after `in`; in Chinese, what precedes the
 * topic.
 */
export function findPlace(text: string): string | undefined {
  const named = text.match(/\b(?:in|at|for|of)\s+((?:[A-Z][\p{L}'.-]*)(?:\s+[A-Z][\p{L}'.-]*)*)/u)
  if (named) return named[1]!.replace(/[.'-]+$/, '')
  const chinese = text.match(
    /(?:^|[,。;!?\s\uff0c\uff1b\uff01\uff1f\uff1a]|请问|查一?下?|告诉我|在|我想知道)([\u3400-\u9fff]{2,5}?)(?:市|今天|明天|现在|当前|的)*(?:天气|气温|时间|几点|温度|下雨)/,
  )
  if (chinese) return chinese[1]
  return text.match(/\bin\s+([a-z][a-z-]+)(?=\s*(?:[?.!,]|$|today|now|tomorrow))/i)?.[1]
}

const chineseZones: Readonly<Record<string, string>> = {
  北京: 'Asia/Shanghai',
  上海: 'Asia/Shanghai',
  中国: 'Asia/Shanghai',
  香港: 'Asia/Hong_Kong',
  台北: 'Asia/Taipei',
  东京: 'Asia/Tokyo',
  首尔: 'Asia/Seoul',
  新加坡: 'Asia/Singapore',
  伦敦: 'Europe/London',
  巴黎: 'Europe/Paris',
  柏林: 'Europe/Berlin',
  莫斯科: 'Europe/Moscow',
  纽约: 'America/New_York',
  洛杉矶: 'America/Los_Angeles',
  悉尼: 'Australia/Sydney',
}

/** An IANA time zone: one in the text, or that of a place in the text. */
export function findTimeZone(text: string): string | undefined {
  const named =
    text.match(/\b[A-Z][A-Za-z]+\/[A-Z][A-Za-z_]+(?:\/[A-Z][A-Za-z_]+)?\b/)?.[0] ?? text.match(/\b(?:UTC|GMT)\b/)?.[0]
  if (named) return named
  for (const [place, zone] of Object.entries(chineseZones)) if (text.includes(place)) return zone
  const place = findPlace(text)?.replaceAll(' ', '_').toLowerCase()
  if (place === 'beijing') return 'Asia/Shanghai'
  return place && Intl.supportedValuesOf('timeZone').find((zone) => zone.toLowerCase().endsWith(`/${place}`))
}

export const findUrl = (text: string): string | undefined => text.match(/https?:\/\/[^\s"'<>\uff0c。]+/)?.[0]
export const findEmail = (text: string): string | undefined => text.match(/[\w.+-]+@[\w-]+\.[\w.]+\w/)?.[0]
export const findPath = (text: string): string | undefined =>
  text.match(/(?:\.{0,2}\/)?(?:[\w.-]+\/)*[\w-]+\.[a-z]\w{0,7}\b|(?:\.{0,2}\/)[\w./-]+/)?.[0]
/** A word with a digit in it, such as `A-1042` or `#77`. */
export const findCode = (text: string): string | undefined => text.match(/#?([A-Za-z]*[-_]?\d[\w-]*)/)?.[1]
export const findDate = (text: string): string | undefined => text.match(/\b\d{4}-\d{2}-\d{2}\b/)?.[0]
