// The question of a step to a person, and its answer.

/// Sends a request with a credential: the page's token, or the key of a question.
async function answerRequest(path, credential, body) {
  try {
    const headers = { Authorization: "Bearer " + credential };
    if (body) headers["Content-Type"] = "application/json";
    const answer = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
    if (answer.ok) { showError(""); return await answer.json(); }
    showError((await answer.text()).trim());
  } catch (error) {
    showError("pipe serve does not answer: it may have ended.");
  }
  return null;
}

function answeredText(question) {
  return question.answer + " by " + question.who + ", " + date(question.answered) + (question.note ? ": " + question.note : "");
}

/// A form that answers; `done` gets the answered question.
function questionForm(question, credential, done) {
  const field = (label, max) => { const input = el("input", { type: "text", maxlength: max, autocomplete: "off" }); return [el("label", {}, label, " ", input), input]; };
  const [who, whoInput] = field("Your name", 100), [note, noteInput] = field("Note", 500);
  const buttons = [];
  const send = async (answer) => {
    buttons.forEach((each) => { each.disabled = true; });
    const answered = await answerRequest("/api/answer", credential, { run: question.run, step: question.step, answer, name: whoInput.value.trim(), note: noteInput.value.trim() });
    if (answered) done(answered); else buttons.forEach((each) => { each.disabled = false; });
  };
  for (const [answer, text] of [["yes", "Yes"], ["no", "No"]]) {
    const button = el("button", { type: "button" }, text);
    button.addEventListener("click", () => send(answer));
    buttons.push(button);
  }
  return el("div", { class: "card question", role: "group", "aria-label": "Question of " + clean(question.step) },
    el("h2", {}, name(question.question)), el("div", { class: "dim" }, "Step ", name(question.step), " asks, since " + date(question.asked) + ". No fails it."),
    el("div", { class: "pager" }, who, note, ...buttons));
}

/// The page of one question: with its key from a message, or with the page's token.
function questionPage(head, main) {
  const words = new URLSearchParams(location.search), key = location.hash.slice(1), run = words.get("run") || "", step = words.get("step") || "";
  const credential = key || localStorage.getItem("token");
  head.append(el("h1", {}, "A question"));
  const show = (question) => {
    document.title = clean(question.pipeline) + " asks";
    head.replaceChildren(el("h1", {}, name(question.pipeline)), el("div", { class: "dim mono" }, name(question.run)));
    main.replaceChildren(question.answer
      ? el("div", { class: "card", role: "status" }, el("h2", {}, name(question.question)), el("div", {}, "Step ", name(question.step), ": ", name(answeredText(question))))
      : questionForm(question, credential, show));
  };
  const isShown = shownView();
  answerRequest("/api/question?" + new URLSearchParams({ run, step }), credential).then((question) => question && isShown() && show(question));
  return () => {};
}
