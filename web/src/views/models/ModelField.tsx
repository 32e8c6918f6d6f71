/** ModelField: a text field for the name of a model, with the names that can be used now and a notice about the chosen one. */
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { modelsQuery } from "@/views/models/modelsQuery";
import { noticeOf, usableNames } from "@/views/models/notice";
import { Advice, NoticeText } from "@/views/models/NoticeText";
import { SetUpLink } from "@/views/models/SetUpLink";
import { Input } from "@/ui";

export function ModelField({ label, value, onChange, isOptional = false, problem = "", takesFocus = false }: { label: string; value: string; onChange: (name: string) => void; isOptional?: boolean; /** Why the server refused the name; shown in place of the notice. */ problem?: string; takesFocus?: boolean }) {
  const models = useQuery(modelsQuery);
  const id = useId();
  const notice = value.trim() || isOptional ? noticeOf(models.data, value) : null;
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id}>{label}</label>
      <Input id={id} autoFocus={takesFocus} list={`${id}names`} value={value} onChange={(event) => onChange(event.target.value)} placeholder={models.data ? `${models.data.default} (default)` : "The server's default"} aria-describedby={problem || notice ? `${id}note` : undefined} autoComplete="off" spellCheck={false} className="font-normal" />
      <datalist id={`${id}names`}>
        {usableNames(models.data).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {problem ? (
        <p role="alert" id={`${id}note`} className="text-xs break-words text-fail">
          <Advice text={problem} />
        </p>
      ) : (
        notice && <NoticeText id={`${id}note`} notice={notice} />
      )}
      {!value.trim() && models.data?.default === "demo" && <SetUpLink className="text-xs font-medium" />}
    </div>
  );
}
